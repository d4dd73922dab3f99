// Finds the cheapest way through a chain of layers of different sizes and costs within a byte budget.
//
// The method is a dynamic programme (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019) over persistent schedules:
// what is remembered stays until its layer's backward has used it. For every layer there are two choices: to remember
// its input state, or its tape, which is everything else that its backward needs. The result is exact in this class for
// sizes rounded up to a number of units.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "reprise/plan/chain_steps.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// The bytes and costs of a layer. The bytes of a step are all bytes that are live while it takes place, without the
// states and tapes that the schedule chose to remember, and without the layer's input state, unless noted otherwise.
struct ChainLayer {
  // The bytes of a forward step.
  struct Forward {
    Bytes advance = 0;       // that evicts the tape; the input state is remembered
    Bytes advance_from = 0;  // that evicts the tape and the input state, which is counted here
    Bytes tape = 0;          // that remembers the tape and the state it makes; the input state is remembered
    Bytes tape_from = 0;     // the same, without remembering the input state, which is counted here
  };

  // Bytes to remember.
  Bytes state_bytes = 0;  // of the state it makes
  Bytes tape_bytes = 0;   // of its tape

  // The states that its backward needs in addition to the tape. The state before it is also remembered until then.
  bool needs_input = true;
  bool needs_state = false;  // the one it makes

  // Costs.
  double run_cost = 0;           // of forward, the first time
  double advance_cost = 0;       // of making its state again
  double tape_cost = 0;          // of making its tape and its state again
  double fresh_retape_cost = 0;  // of making again, right before its backward, all that it needs
  double loose_retape_cost = 0;  // the same, if the state it makes is still there from the next layer's backward
  double backward_cost = 0;

  // Bytes of steps.
  Forward first;                // the first time
  Forward again;                // later; the bytes in `waiting` are added
  Bytes fresh_retape = 0;       // the bytes in `waiting` are added
  Bytes fresh_retape_from = 0;  // the same, with the input state as long as it is used
  Bytes loose_retape = 0;       // the same, with the state it makes, if that is used
  Bytes waiting = 0;            // live for other reasons when its backward is next: gradients, parameters
  Bytes backward = 0;           // of its backward, with its tape, and with the state it makes if that is needed
};

struct ChainProblem {
  std::vector<ChainLayer> layers;
  Bytes input_bytes = 0;  // of state 0, which is there at the start and cannot be made again
};

// Restricts long parts of a chain, so that long chains are solved in little time: a part of layers that is reversed on
// its own is short, or ends with one of these. States may be remembered anywhere.
struct LongParts {
  int longer_than = 0;        // layers
  std::vector<int> end_with;  // layers, counted from 1, ascending; the last one of the chain is always meant
};

struct ChainProgrammeOptions {
  // The number of equal parts, of the budget that is left for remembering, to which sizes are rounded, unless they
  // divide evenly into no more parts. More units: less is lost by rounding; time and memory grow in proportion.
  int units = 500;
  // The way of rounding. `up` gives the cheapest schedule for sizes rounded up. `even` rounds sizes so that the errors
  // cancel out over neighbouring layers, and takes, of the schedules for a bit less or more than the budget, the
  // cheapest one that really fits. That is better if a unit is not much smaller than a state, but without a guarantee.
  enum class Rounding { up, even } rounding = Rounding::up;
  // Finds the schedule with the smallest peak up to the budget, instead of the cheapest one for the budget.
  bool smallest = false;
  // Empty: all schedules are considered. Otherwise time is in the order of
  // layers * (size of end_with)^2 + layers * longer_than^2, times units.
  std::optional<LongParts> long_parts = {};
  // The work ends soon and without a result when any thread sets this to true, or at this time.
  const std::atomic<bool>* cancel = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
};

struct ChainProgramme {
  ChainSteps steps;
  double cost = 0;     // of all steps, and of every layer's backward once
  Bytes peak = 0;      // the most bytes live at any step, not rounded
  Bytes unit = 1;      // sizes were rounded to multiples of this
  bool exact = false;  // true if all sizes were such multiples
};

// Solves the problem. The steps of the result number a layer by its position in the list plus one. Empty if no schedule
// fits the budget, or if the work was cancelled. Time is in the order of layers^3 * units, memory of layers^2 * units.
[[nodiscard]] std::optional<ChainProgramme> solve_chain(const ChainProblem&, Bytes budget,
                                                        const ChainProgrammeOptions& = {});

}  // namespace reprise::internal
