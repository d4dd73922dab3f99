// A fit shows which sizes of a batch, or of sequences, train inside a budget, and what each of them costs.
//
// It is a prediction: the traces of other sizes are continued from recorded ones (trace/growth.h), and planned.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "reprise/export.h"
#include "reprise/plan/planner.h"
#include "reprise/trace/growth.h"

namespace reprise {

struct FitOptions {
  // The most bytes that may be live.
  Bytes budget = 0;
  // The sizes to plan for. Empty: the largest that fits is searched for, and there are points up to it and one beyond.
  std::vector<std::int64_t> wanted = {};
  // The largest size to look at in that search. Empty: 64 times the largest recorded one.
  std::optional<std::int64_t> at_most = {};
  // The number of points up to the largest size, from 1 to 100, if the sizes are not given.
  int points = 8;
  // The time for everything together. More time: cheaper plans, and sometimes a larger size.
  std::chrono::duration<double> time_limit = std::chrono::seconds(30);
  std::uint64_t seed = 1;
  // Called with the share done (0 to 1) and the size that is planned for.
  std::function<void(double share, std::int64_t size)> progress = {};
  // Planning ends soon and returns what there is when any thread sets this to true.
  const std::atomic<bool>* cancel = nullptr;
};

struct REPRISE_EXPORT FitPoint {
  std::int64_t size = 0;
  bool recorded = false;  // planned for a trace that was recorded; false: for a predicted one
  PlanResult result;      // infeasible: `smallest_feasible` is the budget that it would take

  // Cost of the plan over the size; of running everything once over the size. The unit is that of the traces:
  // microseconds of CPU time if a session recorded them.
  [[nodiscard]] double cost_per_sample() const;
  [[nodiscard]] double plain_cost_per_sample() const;
};

struct Fit {
  Bytes budget = 0;
  std::vector<std::int64_t> recorded;   // the sizes that were recorded, ascending
  std::vector<FitPoint> points;         // by ascending size; those that planning was cancelled before are left out
  std::optional<std::size_t> largest;   // the point of the largest size with a plan; empty: none fits
  std::optional<std::size_t> cheapest;  // the point with a plan that costs least per sample
  // True if the search reached the largest size it may try, so larger ones may fit as well.
  bool reached_the_end = false;
  double seconds = 0;
  bool cancelled = false;
};

// Plans every size with `best`. Throws BadOption for sizes that are not above zero, or a number of points out of range.
[[nodiscard]] REPRISE_EXPORT Fit make_fit(const Growth&, const FitOptions&);

}  // namespace reprise
