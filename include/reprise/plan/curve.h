// A curve shows overhead against budget: what each byte of budget is worth for a trace.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "reprise/export.h"
#include "reprise/plan/planner.h"

namespace reprise {

struct CurvePoint {
  Bytes budget = 0;
  // Empty if planning was cancelled before it came to this point. Never infeasible: a plan for a smaller budget works
  // here as well.
  std::optional<PlanResult> result;
};

struct CurveOptions {
  // The number of budgets, from 2 to 1000, evenly spread from the smallest feasible one to the keep-everything peak,
  // both included. Where fewer different numbers lie in between, there are fewer points; one if nothing can be saved.
  int points = 12;
  // The time for all points together, the search for the smallest budget included. More time: a lower curve.
  std::chrono::duration<double> time_limit = std::chrono::seconds(30);
  std::uint64_t seed = 1;
  bool bounds = true;
  // Called with the share done (0 to 1) and the points finished so far.
  std::function<void(double share, int points_done)> progress;
  const std::atomic<bool>* cancel = nullptr;
};

struct Curve {
  std::vector<CurvePoint> points;  // by ascending budget; costs never rise from one to the next
  Bytes smallest = 0;              // the smallest budget for which a plan was found
  Bytes floor = 0;                 // no plan has a smaller peak
  Bytes keep_everything_peak = 0;
  double plain_cost = 0;
  // The point after which more bytes save little time: the one farthest below the straight line between the ends.
  // Empty if no point is below it.
  std::optional<std::size_t> knee;
  double seconds = 0;
  bool cancelled = false;
};

// Plans every point with `best`. Points share their results: one that stays more expensive than its neighbour with a
// smaller budget takes over that plan, and one with a weaker lower bound than its neighbour with a larger budget takes
// over that bound. The ends always have results, whenever planning is cancelled. Throws BadOption for a number of
// points out of range.
[[nodiscard]] REPRISE_EXPORT Curve make_curve(const Trace&, const CurveOptions&);

}  // namespace reprise
