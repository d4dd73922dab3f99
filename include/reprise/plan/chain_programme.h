// The cheapest way through a chain of layers of different sizes and costs within a byte budget.
//
// A dynamic programme (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019) over persistent schedules: what is
// remembered stays until its layer's backward has used it. For every layer there are two choices: remember its input
// state, or remember its tape, everything else that its backward needs. The result is exact in this class for sizes
// rounded up to a number of units.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "reprise/plan/chain_steps.h"
#include "reprise/trace/trace.h"

namespace reprise {

// What a layer costs. Bytes of a step are all bytes live while it takes place, without those of what the schedule chose
// to remember (states and tapes) and without the layer's input state, unless said otherwise.
struct ChainLayer {
  // Of a forward step.
  struct Forward {
    Bytes advance = 0;       // forgetting the tape; the input state is remembered
    Bytes advance_from = 0;  // forgetting the tape and the input state, which is counted here
    Bytes tape = 0;          // with the tape and the state it makes; the input state is remembered
    Bytes tape_from = 0;     // likewise, without remembering the input state, which is counted here
  };

  // To remember.
  Bytes state_bytes = 0;  // the state it makes
  Bytes tape_bytes = 0;   // its tape

  // What its backward needs beside the tape. The state before it is remembered until then, too.
  bool needs_input = true;
  bool needs_state = false;  // the one it makes

  // Costs.
  double run_cost = 0;           // of forward, the first time
  double advance_cost = 0;       // of making its state again
  double tape_cost = 0;          // of making its tape and its state again
  double fresh_retape_cost = 0;  // of making again, right before its backward, all that it needs
  double loose_retape_cost = 0;  // likewise, if the state it makes is still there from the next layer's backward
  double backward_cost = 0;

  // Bytes of steps.
  Forward first;                // the first time
  Forward again;                // later; the bytes in `waiting` come on top
  Bytes fresh_retape = 0;       // likewise
  Bytes fresh_retape_from = 0;  // likewise, with the input state as long as it is used
  Bytes loose_retape = 0;       // likewise, with the state it makes, if that is used
  Bytes waiting = 0;            // live for other reasons when its backward is next: gradients, parameters
  Bytes backward = 0;           // of its backward, with its tape, and with the state it makes if that is needed
};

struct ChainProblem {
  std::vector<ChainLayer> layers;
  Bytes input_bytes = 0;  // to remember state 0, which is there at the start and cannot be made again
};

struct ChainProgrammeOptions {
  // Sizes are rounded to this many equal parts of the budget that there is to remember something in, unless they divide
  // evenly into no more parts. More units: less is lost by rounding; time and memory grow in proportion.
  int units = 500;
  // How. `up`: the cheapest schedule for sizes rounded up. `even`: sizes are rounded so that the errors cancel out over
  // neighbouring layers, and of the schedules for a bit less or more than the budget the cheapest one is taken that
  // really fits. That is better if a unit is not much smaller than a state, and no guarantee.
  enum class Rounding { up, even } rounding = Rounding::up;
  // Instead of the cheapest schedule for the budget: the one with the smallest peak that there is up to the budget.
  bool smallest = false;
  // Set to true from any thread: the work ends soon and without a result.
  const std::atomic<bool>* cancel = nullptr;
};

struct ChainProgramme {
  ChainSteps steps;
  double cost = 0;     // of all steps, and of every layer's backward once
  Bytes peak = 0;      // the most bytes live at any step, not rounded
  Bytes unit = 1;      // what sizes were rounded to multiples of
  bool exact = false;  // all sizes were such multiples
};

// The result's steps go through the layers as their numbers in the list plus one. None: no schedule fits the budget, or
// the work was cancelled. Time is in the order of layers^3 * units, memory of layers^2 * units.
[[nodiscard]] std::optional<ChainProgramme> solve_chain(const ChainProblem&, Bytes budget,
                                                        const ChainProgrammeOptions& = {});

}  // namespace reprise
