// Seeing a chain of layers in a trace.
//
// A chain cuts forward into stretches of moments, its layers, so that only one value crosses each cut that could be
// evicted: the state. Every moment of backward belongs to the layer whose values it needs, and backward goes through
// the layers from the last to the first. Everything else that crosses cuts is kept: what came from outside, what cannot
// be recomputed, what the program holds into backward.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "reprise/trace/timeline.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

struct LayerShape {
  Id first = 0, end = 0;                    // moments first..end-1 of forward
  std::optional<Id> state;                  // the value that crosses into the next layer, if it can be evicted
  std::vector<Id> tape;                     // what its backward needs of what it makes, beside the state; ascending
  bool needs_input = false;                 // its backward needs the state before it
  bool needs_state = false;                 // its backward needs the state it makes
  Id backward_first = 0, backward_end = 0;  // moments of backward that belong to it; none only for the last layer
};

struct ChainShape {
  Id first_backward = 0;           // the first moment of backward
  std::vector<LayerShape> layers;  // in the order of forward
  std::optional<Id> input;  // the value from outside that only the first layer reads, if there is exactly one that the
                            // program does not hold: state 0. It cannot be recomputed, but put into a tier
  std::vector<char> kept;   // by value: never evicted
};

// Returns the chain that a trace with one moment for each layer is: every moment of forward reads the state that the
// moment before it made and beside that only values from outside; every moment of backward needs values of one layer.
// Layers that backward passes over, or that take over the storage of their state, are joined with a neighbour. Throws
// BadOption with the moment that does not fit, in the name of this planner.
[[nodiscard]] ChainShape chain_of(const Trace&, const Timeline&, std::string_view planner);

// Returns the finest chain that any training trace is: cut wherever no more than one value crosses that could be
// evicted. What backward needs out of order is kept. One layer if there is no such place.
[[nodiscard]] ChainShape coarse_chain_of(const Trace&, const Timeline&);

// Returns the same chain with neighbouring layers joined until there are no more than this many.
[[nodiscard]] ChainShape joined(const Trace&, const Timeline&, const ChainShape&, std::size_t layers);

}  // namespace reprise::internal
