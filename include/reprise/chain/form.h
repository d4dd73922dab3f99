// The form of a chain: how many layers, how large, how costly; and its trace.
//
// Layer k (0..n-1) makes state k+1 from state k, and a tape if it has one. Backward goes from layer n-1 to layer 0, and
// of layer k it needs state k, its tape and the gradient that backward of layer k+1 made.
//
// In the trace of a chain state k is value k; with tapes it is value 2k, and the tape of layer k is value 2k+1. Moment
// k is forward of layer k, and moment 2n-1-k is its backward, an event. Gradients are other bytes. Forward makes a tape
// whether or not it is to be remembered, so its bytes count while forward runs.
#pragma once

#include <optional>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise {

struct ChainLayerForm {
  Bytes state = 1;          // of the state it makes
  Bytes tape = 0;           // of its tape, which backward needs in addition to the input state; 0: no tape
  Bytes gradient = 0;       // of the gradient that its backward makes; 0 in all layers: gradients are not counted
  Bytes workspace = 0;      // live only while its forward runs
  double forward_cost = 1;  // any unit
  double backward_cost = 1;
  bool operator==(const ChainLayerForm&) const = default;
};

struct ChainForm {
  std::vector<ChainLayerForm> layers;
  Bytes input = 1;     // state 0
  Bytes gradient = 0;  // of the gradient that backward starts with
  Bytes other = 0;     // live all through forward for other reasons
  bool tapes = false;  // true if forward makes tapes

  // Tiers for states in addition to plain memory, by position in `tiers`: memory for coded states, and a disk.
  std::vector<Tier> tiers;
  std::optional<Id> packed, disk;
  // Memory for states on their way to and from these tiers, in addition to the values of the trace. A budget is that
  // much smaller for a plan that uses them.
  Bytes transit = 0;

  // Of a part of a chain, which a pass that begins with a later layer or is resumed goes through: which layer of the
  // chain its first one is. Empty: these are all layers.
  std::optional<Id> part_from;

  [[nodiscard]] Id size() const { return static_cast<Id>(layers.size()); }
  [[nodiscard]] Id state_value(Id state) const { return tapes ? 2 * state : state; }
  [[nodiscard]] Id tape_value(Id layer) const { return 2 * layer + 1; }  // with tapes
  [[nodiscard]] Id backward_moment(Id layer) const { return 2 * size() - 1 - layer; }
  [[nodiscard]] Bytes state_bytes(Id state) const { return state == 0 ? input : layers[state - 1].state; }
  bool operator==(const ChainForm&) const = default;
};

// Returns the form of layers of one byte and cost 1, so that bytes count states.
[[nodiscard]] REPRISE_EXPORT ChainForm equal_layers(Id layers);

// Add a tier that takes every state, `packed` or `disk`, with the costs of putting a state there and getting it back.
REPRISE_EXPORT void add_packed_tier(ChainForm&, double put_cost = 0, double get_cost = 0);
REPRISE_EXPORT void add_disk_tier(ChainForm&, double put_cost, double get_cost);

// Throws BadOption with the layer and the number for sizes that are negative, and for costs that are negative, infinite
// or not a number.
REPRISE_EXPORT void check(const ChainForm&);

// Returns the trace of a chain, whose form is checked.
[[nodiscard]] REPRISE_EXPORT Trace chain_trace(const ChainForm&);

}  // namespace reprise
