// Online heuristics as simulations: walk through the moments, and whenever the next one does not fit, evict the
// resident value with the lowest score; recompute what is missing when it is needed.
//
// The scores of dynamic tensor rematerialization (DTR, Kirisame et al. 2021) know only the past. The oracle family also
// knows when a value is needed next, which a planner does, and is the better start for a search; and it puts a value
// into a tier instead of evicting it where getting it back is cheaper than recomputing it.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/search/problem.h"

namespace reprise::internal {

struct OnlineScore {
  enum class Kind {
    dtr,      // (cost + cost of missing relatives) / (bytes x staleness)
    local,    // cost / (bytes x staleness)
    msps,     // (cost + cost of missing ancestors) / bytes
    lru,      // 1 / staleness
    largest,  // 1 / bytes
    oracle,   // (cost + a ancestors + d descendants) / (bytes^s x distance to next use^n)
  };
  Kind kind = Kind::dtr;
  double size_power = 1, distance_power = 1, ancestors = 1, descendants = 0;  // of the oracle
};

// Returns the oracle settings worth trying, the ones that win most often first.
[[nodiscard]] const std::vector<OnlineScore>& oracle_scores();

// Values in [0, 1] by value and by which of its first uses comes next: how much a linear program wants the value to be
// absent in the gap before that use.
struct Guidance {
  std::vector<std::vector<float>> absent;
  double weight = 1;
};

// Returns the first uses of each value that a plan has to serve: those during which the program does not hold it.
[[nodiscard]] std::vector<std::vector<Id>> first_uses(const Problem&);

struct OnlineLimits {
  double cost_ratio = 3;       // stop at this many times the plain cost
  std::function<bool()> stop;  // called now and then; true: stop
};

// Returns a timetable in the form of timetable.h without useless repeats. Empty if the heuristic got stuck.
[[nodiscard]] std::optional<std::vector<Id>> simulate_online(const Problem&,
                                                             const std::vector<std::vector<Id>>& first_uses,
                                                             const OnlineScore&, const OnlineLimits&,
                                                             const Guidance* = nullptr);

// Returns the timetable without repeats that nothing uses.
[[nodiscard]] std::vector<Id> without_useless_repeats(const Problem&, std::vector<Id> nodes);

}  // namespace reprise::internal
