// Random traces for tests of properties: small, valid (they pass `check`), and the same for the same seed everywhere.
#pragma once

#include <cstdint>

#include "reprise/trace/trace.h"

namespace reprise::testing {

// The numbers are probabilities unless they say something else. Costs and bytes are small whole numbers, so that sums
// of costs are exact and a test can compare them with ==.
struct RandomTraceOptions {
  int moments = 12;               // exactly this many
  double events = 0.25;           // of a moment being an event
  double outside = 0.25;          // of an input being a new value from outside, instead of one that exists
  double several_outputs = 0.3;   // of an operator having two or three outputs
  double no_outputs = 0.05;       // of an operator having none
  double in_place = 0.15;         // of an operator's first output taking over an input
  double workspace = 0.3;         // of an operator having some
  double other_bytes = 0.3;       // of a moment having other bytes different from the moment before
  double held = 0.3;              // of a value being held: from its making, from later on, or arriving from outside
  double not_replayable = 0.1;    // of an operator
  double packed_tier = 0.5;       // of there being a tier that counts in the budget, values at half their bytes
  double disk_tier = 0.5;         // of there being a tier that does not
  double limited_capacity = 0.5;  // of a tier
  double overlap = 0;             // of a tier that is not in the budget taking time beside the computation
  double zero_cost = 0.1;         // of an operator, an event, a put or a get
  double zero_bytes = 0.1;        // of a value
  double odd_costs = 0;           // of a cost being any double there is instead of a whole number up to 10
  Bytes largest_value = 20;       // bytes of a value, a workspace or a step of the other bytes
};

// General timelines.
[[nodiscard]] Trace random_trace(std::uint64_t seed, const RandomTraceOptions& options = {});

// As from a graph file: operators with one output each and no events, held values, workspace or tiers.
[[nodiscard]] Trace random_graph(std::uint64_t seed, int nodes);

// A training step: operators of a forward pass (with weights from outside that are held throughout, here and there a
// second output, dropout that may not be replayed, an operator in place), then events of backward that need the
// forward's values in reverse while the gradients, as other bytes, grow. Has 2 * layers + 1 moments.
[[nodiscard]] Trace random_training_step(std::uint64_t seed, int layers);

// What these are made with, for tests that want more: a generator whose numbers do not depend on the standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  [[nodiscard]] std::uint64_t next();
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return next() % bound; }  // 0 .. bound - 1
  [[nodiscard]] Id between(Id first, Id last) {                                      // both included
    return first + static_cast<Id>(below(static_cast<std::uint64_t>(last - first) + 1));
  }
  [[nodiscard]] bool chance(double probability) {
    return static_cast<double>(next() >> 11) < probability * 9007199254740992.0;
  }

 private:
  std::uint64_t state_;
};

}  // namespace reprise::testing
