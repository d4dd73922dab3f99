#include "reprise/plan/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "reprise/trace/error.h"

namespace reprise {
namespace {

constexpr int most_fit_points = 100;
constexpr std::int64_t default_reach = 64;  // times the largest recorded size: where a search ends by default
constexpr double search_share = 0.5;        // of the time: for the largest size that fits
constexpr double least_seconds = 0.01;      // for one plan, however many there are

class FitMaker {
 public:
  FitMaker(const Growth& growth, const FitOptions& options) : growth_(growth), options_(options) {}

  Fit run() {
    fit_.budget = options_.budget;
    for (const SizedTrace& known : growth_.recorded()) fit_.recorded.push_back(known.size);
    plan_points(options_.wanted.empty() ? sizes_up_to(search()) : wanted());
    judge();
    fit_.cancelled = cancelled();
    fit_.seconds = seconds();
    return std::move(fit_);
  }

 private:
  [[nodiscard]] bool cancelled() const { return options_.cancel && options_.cancel->load(std::memory_order_relaxed); }
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  [[nodiscard]] double limit() const { return options_.time_limit.count(); }

  [[nodiscard]] bool is_recorded(std::int64_t size) const {
    return std::find(fit_.recorded.begin(), fit_.recorded.end(), size) != fit_.recorded.end();
  }

  [[nodiscard]] PlanResult plan(std::int64_t size, double seconds_for_it) {
    const PlanOptions options{.budget = options_.budget,
                              .time_limit = std::chrono::duration<double>(std::max(seconds_for_it, least_seconds)),
                              .seed = options_.seed,
                              .start = known_plan_,
                              .progress = [&](const PlanProgress&) { report(size); },
                              .cancel = options_.cancel};
    report(size);
    PlanResult result = make_plan(growth_.at(size), options);
    // All sizes have one structure: what works for one is a good place to search from for the next.
    if (result.has_plan()) known_plan_ = result.plan;
    return result;
  }

  void report(std::int64_t size) const {
    if (options_.progress) options_.progress(limit() > 0 ? std::min(1.0, seconds() / limit()) : 1.0, size);
  }

  // ---- which sizes ----

  [[nodiscard]] std::vector<std::int64_t> wanted() const {
    const std::set<std::int64_t> sizes(options_.wanted.begin(), options_.wanted.end());
    return {sizes.begin(), sizes.end()};
  }

  [[nodiscard]] std::int64_t farthest() const {
    if (options_.at_most) return *options_.at_most;
    const std::int64_t largest = fit_.recorded.back();
    return largest > std::numeric_limits<std::int64_t>::max() / default_reach ? largest : largest * default_reach;
  }

  // Returns the largest size from `low` to `high` for which `fits`, which becomes false once and stays so; `low` - 1 if
  // none does.
  template <typename Fits>
  static std::int64_t last_that(std::int64_t low, std::int64_t high, const Fits& fits) {
    while (low <= high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (fits(middle)) {
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    return low - 1;
  }

  // Returns whether no moment by itself is too large for the budget, and the numbers not too large for a trace.
  [[nodiscard]] bool is_possible(std::int64_t size) const try {
    return floor_of(growth_.at(size)).bytes <= options_.budget;
  } catch (const BadInput&) {
    return false;
  }

  // Returns the largest size with a plan; zero if none has one.
  [[nodiscard]] std::int64_t search() {
    const std::int64_t most = farthest();
    const std::int64_t possible = last_that(1, most, [&](std::int64_t size) { return is_possible(size); });
    const std::int64_t easy = last_that(
        1, possible, [&](std::int64_t size) { return keep_everything(growth_.at(size)).budget <= options_.budget; });
    const double plans = std::ceil(std::log2(static_cast<double>(possible - easy + 1))) + 1;
    const std::int64_t largest = last_that(easy + 1, possible, [&](std::int64_t size) {
      if (cancelled()) return false;
      PlanResult result = plan(size, search_share * limit() / plans);
      const bool fits = result.has_plan();
      if (!fits) too_large_ = FitPoint{size, is_recorded(size), std::move(result)};
      return fits;
    });
    fit_.reached_the_end = largest == most;
    return largest;
  }

  // Evenly spread, the largest among them, and the one beyond it, which does not fit. The recorded ones show how far
  // the others are predictions.
  [[nodiscard]] std::vector<std::int64_t> sizes_up_to(std::int64_t largest) const {
    std::set<std::int64_t> sizes;
    for (int i = 1; i <= options_.points; ++i) {
      const double part = static_cast<double>(i) / options_.points;
      if (largest > 0) sizes.insert(std::max<std::int64_t>(1, std::llround(static_cast<double>(largest) * part)));
    }
    for (const std::int64_t size : fit_.recorded) {
      if (size <= largest) sizes.insert(size);
    }
    if (!fit_.reached_the_end) sizes.insert(largest + 1);
    return {sizes.begin(), sizes.end()};
  }

  // ---- points ----

  // From the largest down: the plan of a larger size fits a smaller one, so that what is found is never lost.
  void plan_points(const std::vector<std::int64_t>& sizes) {
    for (std::size_t left = sizes.size(); left > 0 && !cancelled(); --left) {
      const std::int64_t size = sizes[left - 1];
      if (too_large_ && too_large_->size == size) {
        fit_.points.push_back(*std::move(too_large_));
        continue;
      }
      PlanResult result = plan(size, (limit() - seconds()) / static_cast<double>(left));
      if (cancelled() && !result.has_plan()) break;
      fit_.points.push_back({size, is_recorded(size), std::move(result)});
    }
    std::reverse(fit_.points.begin(), fit_.points.end());
  }

  void judge() {
    for (std::size_t i = 0; i < fit_.points.size(); ++i) {
      const FitPoint& point = fit_.points[i];
      if (!point.result.has_plan()) continue;
      fit_.largest = i;
      const bool cheaper = !fit_.cheapest || point.cost_per_sample() < fit_.points[*fit_.cheapest].cost_per_sample();
      if (cheaper) fit_.cheapest = i;
    }
  }

  const Growth& growth_;
  const FitOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<Plan> known_plan_;     // of the size that was planned last
  std::optional<FitPoint> too_large_;  // the smallest size that the search found no plan for
  Fit fit_;
};

}  // namespace

double FitPoint::cost_per_sample() const {
  return result.simulation.cost / static_cast<double>(size);
}

double FitPoint::plain_cost_per_sample() const {
  return result.plain_cost / static_cast<double>(size);
}

Fit make_fit(const Growth& growth, const FitOptions& options) {
  for (const std::int64_t size : options.wanted) {
    if (size <= 0) throw BadOption(fmt::format("[fit] wanted has {}, but sizes have to be above zero", size));
  }
  if (options.at_most && *options.at_most <= 0) {
    throw BadOption(fmt::format("[fit] at_most is {}, but has to be above zero", *options.at_most));
  }
  if (options.points < 1 || options.points > most_fit_points) {
    throw BadOption(fmt::format("[fit] points is {}, but has to be from 1 to {}", options.points, most_fit_points));
  }
  if (options.budget < 0) throw BadOption(fmt::format("[fit] budget is {}: it must not be negative", options.budget));
  return FitMaker(growth, options).run();
}

}  // namespace reprise
