// Overhead against budget: what each byte of budget is worth for a trace.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "reprise/plan/planner.h"

namespace reprise {

struct CurvePoint {
  Bytes budget = 0;
  std::optional<PlanResult> result;  // none: planning was cancelled before it came to this point
};

struct CurveOptions {
  // How many budgets, evenly spread from the smallest feasible one to the keep-everything peak, both included. At least 2.
  int points = 12;
  // For all points together, the search for the smallest budget included. More time: a lower curve.
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
  // The point after which more bytes buy little: the one farthest below the straight line between the ends.
  std::optional<std::size_t> knee;
};

[[nodiscard]] Curve make_curve(const Trace&, const CurveOptions&);

}  // namespace reprise
