// Chen, Xu, Zhang, Guestrin: Training deep nets with sublinear memory cost (2016).
#include <algorithm>
#include <cmath>

#include "plan/first_backward_moment.h"
#include "plan/planners.h"
#include "reprise/plan/segments.h"
#include "reprise/trace/timeline.h"

namespace reprise::internal {
namespace {

// How many limits `chen-greedy` tries first, evenly spaced on a logarithmic scale, and how many more around the best.
constexpr int coarse_tries = 16;
constexpr int fine_tries = 8;

// By operator of forward, in the order of running: the bytes it makes.
std::vector<Bytes> bytes_made(const Trace& trace) {
  const Id first_backward = first_backward_moment(trace);
  std::vector<Bytes> made;
  for (Id m = 0; m < first_backward; ++m) {
    if (!trace.moments[m].runs) continue;
    Bytes bytes = 0;
    for (const Id v : trace.outputs(m)) {
      if (!trace.values[v].takes_over) bytes += trace.values[v].bytes;
    }
    made.push_back(bytes);
  }
  return made;
}

// Segments closed as soon as the bytes made inside pass the limit.
Segments greedy_segments(const std::vector<Bytes>& made, Bytes limit) {
  const Id operators = static_cast<Id>(made.size());
  std::vector<Stretch> ranges;
  Bytes bytes = 0;
  for (Id op = 0, first = 0; op < operators; ++op) {
    bytes += made[op];
    if (bytes <= limit && op + 1 < operators) continue;
    ranges.push_back({first, op});
    first = op + 1;
    bytes = 0;
  }
  return {operators, std::move(ranges)};
}

// Tries limits and remembers the cheapest plan that fits the budget, or else the one with the smallest peak.
class GreedySearch {
 public:
  GreedySearch(const Trace& trace, const PlanOptions& options)
      : trace_(trace), options_(options), made_(bytes_made(trace)) {}

  std::optional<Plan> search() {
    Bytes total = 0, largest = 0;
    for (const Bytes bytes : made_) total += bytes, largest = std::max(largest, bytes);
    const double low = std::log(static_cast<double>(std::max<Bytes>(largest / 4, 1)));
    const double high = std::max(low, std::log(static_cast<double>(std::max<Bytes>(total, 1))));
    const double step = (high - low) / (coarse_tries - 1);
    for (int i = 0; i < coarse_tries; ++i) attempt(low + i * step);
    const double around = best_at_;
    constexpr int pairs = fine_tries / 2;
    for (int i = 1; i <= pairs; ++i) {
      const double offset = step * i / (pairs + 1);
      attempt(around - offset);
      attempt(around + offset);
    }
    return std::move(best_);
  }

 private:
  void attempt(double logarithm) {
    if (best_ && options_.cancel && options_.cancel->load(std::memory_order_relaxed)) return;
    const Segments segments = greedy_segments(made_, static_cast<Bytes>(std::exp(logarithm)));
    if (!tried_.empty() && std::find(tried_.begin(), tried_.end(), segments.ranges()) != tried_.end()) return;
    tried_.push_back(segments.ranges());
    Plan plan = SegmentPlan(trace_, segments, options_.budget).plan();
    const Simulation simulation = simulate(trace_, plan, {.record_live = false, .check_budget = false});
    const bool fits = simulation.peak <= options_.budget;
    const bool better = fits != best_fits_ ? fits : fits ? simulation.cost < best_cost_ : simulation.peak < best_peak_;
    if (best_ && !better) return;
    best_ = std::move(plan);
    best_fits_ = fits;
    best_cost_ = simulation.cost;
    best_peak_ = simulation.peak;
    best_at_ = logarithm;
  }

  const Trace& trace_;
  const PlanOptions& options_;
  const std::vector<Bytes> made_;
  std::vector<std::vector<Stretch>> tried_;
  std::optional<Plan> best_;
  bool best_fits_ = false;
  double best_cost_ = 0;
  Bytes best_peak_ = 0;
  double best_at_ = 0;
};

}  // namespace

std::optional<Plan> plan_chen_sqrt(const Trace& trace, const PlanOptions& options) {
  const Id operators = forward_operators(trace);
  const Id segments = static_cast<Id>(std::lround(std::sqrt(static_cast<double>(operators))));
  return SegmentPlan(trace, Segments::uniform(operators, segments), options.budget).plan();
}

std::optional<Plan> plan_chen_greedy(const Trace& trace, const PlanOptions& options) {
  return GreedySearch(trace, options).search();
}

}  // namespace reprise::internal
