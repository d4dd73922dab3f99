// Lower bounds: what any plan for a budget must cost at least.
//
// Between two uses of a value in the plain order lies a gap. If the value is absent at any moment inside the gap, it
// has to be recomputed within it, and gaps of one value are disjoint in time, so every such gap costs at least one
// replay (or a get). A variable x for each gap, and one row for each moment that says what must be live there: that is
// the gap program. It holds for every plan that runs the moments in order, however often and wherever it replays.
//
// A replay needs the inputs of its operator. An input that no moment needs any more by then has to be kept beyond its
// last use (w, which costs memory) or be recomputed itself (e, which costs a replay, and needs its own inputs in turn).
//
// Pivots make this sharper: the gaps are cut at a few moments. A value that is absent after pivot p is recomputed after
// p, so an input that is past its last use at p is there at p, kept (w) or recomputed in between (r, memory at p), or
// is recomputed after p (e at p). Leaving r out would make the bound wrong.
#pragma once

#include <optional>
#include <vector>

#include "plan/bounds/highs.h"
#include "plan/search/online_scores.h"
#include "plan/search/problem.h"

namespace reprise::internal {

// Returns a quick bound, without a solver: at a moment where the plain order is above the budget, enough of the values
// that lie there unused have to be absent, and each of their operators is paid once. The best of several such moments.
[[nodiscard]] double quick_bound(const Problem&, const std::vector<std::vector<Id>>& uses);

// Programs larger than this take longer than they are worth; in non-zero coefficients.
inline constexpr std::size_t largest_program = 1'500'000;
inline constexpr std::size_t largest_program_without_clock = 150'000;  // where no time limit can stop it
// Returns how many a program may have that takes at most this much memory, the solver's included; `largest_program`
// without a limit.
[[nodiscard]] std::size_t largest_program_within(std::optional<Bytes> memory);

class BoundProgram {
 public:
  // `uses` as from first_uses(problem). Pivots are moments, ascending: more of them make a sharper bound and a larger
  // program. They are worth most where memory is short.
  BoundProgram(const Problem& problem, const std::vector<std::vector<Id>>& uses, std::vector<Id> pivots);

  struct Result {
    bool infeasible = false;         // no plan fits the budget, within the solver's tolerances
    bool complete = false;           // solved to the end
    std::optional<double> cost;      // no plan costs less
    std::optional<Guidance> absent;  // how much the program wants each value to be absent in each gap
  };
  [[nodiscard]] Result solve(const SolveOptions& options) const;

  [[nodiscard]] std::size_t nonzeros() const { return program_.nonzeros(); }
  [[nodiscard]] bool has_pivots() const { return !pivots_.empty(); }

 private:
  struct Requirement {  // variable <= kept until `at` + recomputed
    int variable;
    Id value, at;
    bool pivot;
  };

  void add_lives();
  void add_gap(Id value, Id use_index, Id from, Id to);
  void require_inputs(int variable, Id node, Id at);
  int recomputed(Id value, Id after);
  void add_requirements();
  void add_counts();
  void add_memory();
  void charge(Id value, int variable);
  void occupy(int variable, Id from, Id to, double amount);  // moments from..to-1

  const Problem& problem_;
  const std::vector<std::vector<Id>>& uses_;
  LinearProgram program_;
  double cost_scale_, bytes_scale_;
  std::vector<Id> pivots_;
  std::vector<Id> dead_after_;                 // by value: the last moment at which it is there in the plain order
  std::vector<double> there_;                  // by moment: change of the bytes of values that are there
  std::vector<LinearProgram::Terms> changes_;  // by moment: the same from variables
  std::vector<std::vector<std::pair<Id, int>>> kept_, recomputed_, again_;  // by value: (moment, variable w, e, r)
  std::vector<std::pair<Id, Id>> pending_;  // (value, after) whose recomputing needs inputs
  std::vector<Requirement> requirements_;
  std::vector<LinearProgram::Terms> charges_;  // by value: replays of its maker on its behalf
  std::vector<int> puts_;                      // by copy: the variable of its put; -1: none yet
  struct Gap {
    Id value, use_index;
    int variable;
  };
  std::vector<Gap> gaps_;
};

}  // namespace reprise::internal
