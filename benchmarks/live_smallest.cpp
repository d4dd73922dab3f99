// The smallest budget that is kept, by bisection.
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "bench_live.h"
#include "report/floor_parts.h"
#include "reprise/torch/errors.h"
#include "reprise/trace/error.h"
#include "training_sides.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

constexpr Bytes precision = 1000;  // the last step of the search is this part of the budget

class Search {
 public:
  explicit Search(const LiveSettings& settings)
      : settings_(settings), sides_(settings.model, settings.optimizer), high_(sides_.plain_peak()) {}

  SmallestReport run() {
    report_.model = settings_.model;
    report_.optimizer = settings_.optimizer;
    report_.level = sides_.level();
    report_.plain_peak = sides_.plain_peak();
    probe(high_);  // what plain needs must be enough
    while (high_ - low_ > high_ / precision) probe(next());
    report_.budget = high_;
    report_.largest_failed = low_;
    return report_;
  }

 private:
  // A hint is tried as it is, then just below, so that a good one ends the search; otherwise the middle.
  Bytes next() {
    const std::optional<Bytes> hint = std::exchange(hint_, std::nullopt);
    if (hint && *hint > low_ && *hint < high_) {
      below_hint_ = *hint - *hint / precision;
      return *hint;
    }
    const Bytes below = std::exchange(below_hint_, 0);
    if (below > low_ && below < high_) return below;
    return low_ + (high_ - low_) / 2;
  }

  // Three steps of a new session that has seen the trace under the plain peak, and planned it for this budget.
  void probe(Bytes budget) {
    constexpr int steps = 3;
    ++report_.points;
    Session session = sides_.session(settings_.session, report_.plain_peak);
    Sample sample = sides_.reprise(session);
    session.budget(report_.level + budget);
    try {
      sample = sides_.reprise(session, steps);
    } catch (const BudgetError& error) {
      failed(budget, error.what());
      hint_ = above_level(error.facts().smallest_feasible ? error.facts().smallest_feasible
                                                          : session.summary().smallest_feasible);
      return;
    }
    report_.bit_equal = report_.bit_equal && sample.bit_equal();
    if (sample.peak > budget || !sample.bit_equal()) {
      failed(budget, "the steps ended, but not within the budget and bit-equal");
      return;
    }
    high_ = budget;
    report_.peak = sample.peak;
    if (const auto trace = session.trace()) {
      const Blocker floor = floor_of(*trace);
      report_.floor = floor.bytes - report_.level;
      report_.floor_set_by = describe_floor(*trace, floor);
    }
    std::cerr << "point " << report_.points << ": " << budget << " kept\n";
  }

  void failed(Bytes budget, const std::string& why) {
    std::cerr << "point " << report_.points << ": " << budget << " not kept: " << why << '\n';
    if (budget == high_ && budget == report_.plain_peak)
      throw Error("[bench live] not even the plain peak is kept: " + why);
    low_ = budget;
    report_.error = why;
  }

  std::optional<Bytes> above_level(const std::optional<Bytes>& bytes) const {
    if (!bytes) return std::nullopt;
    return *bytes - report_.level;
  }

  const LiveSettings& settings_;
  Sides sides_;
  Bytes low_ = 0;  // not kept
  Bytes high_;     // kept
  std::optional<Bytes> hint_;
  Bytes below_hint_ = 0;
  SmallestReport report_;
};

}  // namespace

SmallestReport find_smallest(const LiveSettings& settings) {
  return Search(settings).run();
}

}  // namespace reprise::benchmarks
