// Chains for tests: traces that are chains of layers, and a machine that executes a chain's schedule step by step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reprise/plan/chain_steps.h"
#include "reprise/trace/trace.h"

namespace reprise::testing {

// A chain to make a trace of. Layer k reads state k-1 and makes state k, and a tape if it has bytes for one. Backward
// of layer k needs state k-1, the tape, state k if the layer says so, and the gradient that backward of layer k+1 made.
struct ChainForm {
  struct Layer {
    Bytes state = 1, tape = 0, gradient = 0;  // gradient: of the state before the layer, made by its backward
    Bytes workspace = 0, backward_workspace = 0;
    double forward_cost = 1, backward_cost = 1;
    bool needs_input = true, needs_output = false;
  };
  std::vector<Layer> layers;
  Bytes input = 1;       // state 0, from outside
  bool events = false;   // backward moments are events, and gradients are other bytes
  Bytes parameters = 0;  // read by every forward moment, held throughout
};

[[nodiscard]] ChainForm equal_layers(int layers, const ChainForm::Layer& layer = {});
// Small random sizes and costs; with events or operators as backward.
[[nodiscard]] ChainForm random_chain(std::uint64_t seed, int layers);

[[nodiscard]] Trace chain_trace(const ChainForm&);

// The chain of planning experiments: states 1..n-1 of one byte and cost 1, then backward n..1, where backward k needs
// state k-1 and the gradient before it, of no bytes. The input has one byte.
[[nodiscard]] Trace graph_chain(int layers);

// A disk for all states (and the input) of a chain trace, in equal terms.
[[nodiscard]] Tier disk_for(const Trace&, double put_cost, double get_cost);

// What happened when a schedule was executed.
struct StepReport {
  std::string mistake;  // empty: every step had what it needs, and every layer had its backward once, in reverse
  std::int64_t advances = 0, tapes = 0;
  std::vector<std::int64_t> writes, reads;  // by level
  std::vector<int> most_stored;             // by level: the most states at any time
};
[[nodiscard]] StepReport execute_steps(const ChainSteps&, int layers, int levels = 1);

}  // namespace reprise::testing
