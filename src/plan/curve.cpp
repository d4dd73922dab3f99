#include "reprise/plan/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/search/search.h"
#include "reprise/plan/smallest.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

constexpr int most_curve_points = 1000;
constexpr double smallest_share = 0.25;     // of the time: for the smallest budget
constexpr double least_retry_share = 0.02;  // of the time: less than this is not used for a second attempt

class CurveMaker {
 public:
  CurveMaker(const Trace& trace, const CurveOptions& options) : trace_(trace), options_(options) {}

  Curve run() {
    const Plan everything = keep_everything(trace_);
    curve_.keep_everything_peak = everything.budget;
    curve_.floor = floor_of(trace_).bytes;
    curve_.plain_cost = trace_.total_cost();
    const Plan smallest = find_smallest();
    curve_.smallest = smallest.budget;
    spread_budgets();

    plan_points();
    // Whatever happened in between, both ends have plans.
    share(curve_.points.front(), smallest);
    share(curve_.points.back(), everything);
    share_plans();
    plan_again_with_time_left();
    curve_.knee = find_knee();
    curve_.cancelled = cancelled();
    curve_.seconds = seconds();
    report();
    return std::move(curve_);
  }

 private:
  [[nodiscard]] bool cancelled() const { return options_.cancel && options_.cancel->load(std::memory_order_relaxed); }
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  [[nodiscard]] double limit() const { return options_.time_limit.count(); }
  [[nodiscard]] double left() const { return limit() - seconds(); }

  [[nodiscard]] PlanOptions plan_options(Bytes budget, double seconds) const {
    PlanOptions options;
    options.budget = budget;
    options.time_limit = std::chrono::duration<double>(seconds);
    options.seed = options_.seed;
    options.bounds = options_.bounds;
    options.cancel = options_.cancel;
    options.progress = [this](const PlanProgress&) { report(); };
    return options;
  }

  [[nodiscard]] Plan find_smallest() const {
    report();
    return smallest_plan(trace_, plan_options(0, smallest_share * limit()));
  }

  void spread_budgets() {
    const Bytes range = curve_.keep_everything_peak - curve_.smallest;
    const Bytes steps = options_.points - 1;
    for (Bytes i = 0; i <= steps; ++i) {
      const Bytes budget = curve_.smallest + range / steps * i + range % steps * i / steps;
      if (!curve_.points.empty() && curve_.points.back().budget == budget) continue;
      curve_.points.push_back({budget, std::nullopt});
    }
  }

  // Returns the order of planning: the ends first, then always the middle of what is between: whenever it is cancelled,
  // what there is shows the whole curve. What one leaves of its share of the time, because its plan is proven optimal,
  // goes to the others.
  [[nodiscard]] std::vector<std::size_t> order() const {
    std::vector<std::size_t> order = {curve_.points.size() - 1};
    if (curve_.points.size() > 1) order.push_back(0);
    std::vector<std::pair<std::size_t, std::size_t>> between = {{0, curve_.points.size() - 1}};
    for (std::size_t i = 0; i < between.size(); ++i) {
      const auto [low, high] = between[i];
      if (high - low < 2) continue;
      const std::size_t middle = low + (high - low) / 2;
      order.push_back(middle);
      between.emplace_back(low, middle);
      between.emplace_back(middle, high);
    }
    return order;
  }

  void plan_points() {
    std::size_t unplanned = curve_.points.size();
    for (const std::size_t i : order()) {
      CurvePoint& point = curve_.points[i];
      const double share = left() / static_cast<double>(unplanned--);
      if (cancelled()) return;
      if (share > 0) {
        point.result = make_plan(trace_, plan_options(point.budget, share));
        // Without a plan it has not been planned; taking over one from below would make the curve look flat.
        if (cancelled() && !point.result->has_plan()) point.result.reset();
      }
      ++planned_;
      report();
    }
  }

  // A plan for a smaller budget is one for a larger budget too, and no plan for a smaller budget costs less than the
  // bound of a larger one.
  void share_plans() {
    const auto known = [](const CurvePoint& point) { return point.result && point.result->has_plan(); };
    const CurvePoint* below = nullptr;
    for (CurvePoint& point : curve_.points) {
      if (!point.result && cancelled()) continue;
      if (below) share(point, below->result->plan);
      if (known(point)) below = &point;
    }
    const PlanResult* above = nullptr;
    for (std::size_t i = curve_.points.size(); i-- > 0;) {
      auto& result = curve_.points[i].result;
      if (!result) continue;
      if (above) result->lower_bound = std::max(result->lower_bound, above->lower_bound);
      judge(*result);
      above = &*result;
    }
  }

  // Takes the plan, which fits, if the point has none or one that costs more.
  void share(CurvePoint& point, const Plan& plan) {
    if (!point.result) point.result = nothing_planned(point.budget);
    PlanResult& result = *point.result;
    Plan candidate = plan;
    candidate.budget = point.budget;
    Simulation simulation = simulate(trace_, candidate);
    if (!simulation.valid()) {
      throw Error("[curve] a plan for a smaller budget is refused for a larger one, which is a defect of Reprise: " +
                  simulation.broken->sentence);
    }
    if (result.has_plan() && result.simulation.cost <= simulation.cost) return;
    result.status = PlanStatus::feasible;
    result.plan = std::move(candidate);
    result.simulation = std::move(simulation);
    result.smallest_feasible.reset();
    result.blocker.reset();
  }

  void judge(PlanResult& result) {
    const double cost = result.simulation.cost;
    result.status = cost <= result.lower_bound * (1 + proof_tolerance) ? PlanStatus::optimal : PlanStatus::feasible;
    result.lower_bound = std::min(result.lower_bound, cost);
  }

  [[nodiscard]] PlanResult nothing_planned(Bytes budget) const {
    PlanResult result;
    result.planner = "best";
    result.budget = budget;
    result.keep_everything_peak = curve_.keep_everything_peak;
    result.floor = curve_.floor;
    result.plain_cost = result.lower_bound = curve_.plain_cost;
    return result;
  }

  // The widest gap first, each with another seed and its share of what is left.
  void plan_again_with_time_left() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < curve_.points.size(); ++i) {
      const auto& result = curve_.points[i].result;
      if (result && result->status != PlanStatus::optimal) open.push_back(i);
    }
    std::stable_sort(open.begin(), open.end(), [this](std::size_t a, std::size_t b) {
      return curve_.points[a].result->gap() > curve_.points[b].result->gap();
    });
    for (std::size_t k = 0; k < open.size() && left() > least_retry_share * limit() && !cancelled(); ++k) {
      CurvePoint& point = curve_.points[open[k]];
      PlanOptions options = plan_options(point.budget, left() / static_cast<double>(open.size() - k));
      ++options.seed;
      const PlanResult again = make_plan(trace_, options);
      point.result->lower_bound = std::max(point.result->lower_bound, again.lower_bound);
      if (again.has_plan()) share(point, again.plan);
      share_plans();
    }
  }

  [[nodiscard]] std::optional<std::size_t> find_knee() const {
    const CurvePoint& first = curve_.points.front();
    const CurvePoint& last = curve_.points.back();
    const double height = first.result->simulation.cost - last.result->simulation.cost;
    const auto width = static_cast<double>(last.budget - first.budget);
    if (height <= 0 || width <= 0) return std::nullopt;
    std::optional<std::size_t> knee;
    double farthest = 1e-6;  // in parts of the height; closer than this is on the line
    for (std::size_t i = 0; i < curve_.points.size(); ++i) {
      const CurvePoint& point = curve_.points[i];
      if (!point.result) continue;
      const double along = static_cast<double>(point.budget - first.budget) / width;
      const double down = (first.result->simulation.cost - point.result->simulation.cost) / height;
      if (down - along <= farthest) continue;
      farthest = down - along;
      knee = i;
    }
    return knee;
  }

  void report() const {
    if (options_.progress) options_.progress(limit() > 0 ? std::min(1.0, seconds() / limit()) : 1.0, planned_);
  }

  const Trace& trace_;
  const CurveOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Curve curve_;
  int planned_ = 0;
};

}  // namespace

Curve make_curve(const Trace& trace, const CurveOptions& options) {
  if (options.points < 2 || options.points > most_curve_points) {
    throw BadOption(fmt::format("[curve] points is {}, but has to be from 2 to {}", options.points, most_curve_points));
  }
  return CurveMaker(trace, options).run();
}

}  // namespace reprise
