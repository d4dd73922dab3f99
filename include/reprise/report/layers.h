// The live bytes of a plan, taken apart: what they are at every action, and a picture's worth of it.
//
// All of them together are Simulation::live, to the byte. What a layer is:
//  - parameters: what is there throughout. The smallest `other` of all moments, and values from outside that the
//    program holds from the first moment to the last: parameters, optimizer state, the batch.
//  - gradients: other bytes that come during the step and stay until its end: the smallest `other` from the moment on,
//    without the parameters.
//  - kept: resident values since they were first made, or came from outside.
//  - packed: copies in tiers that count in the budget.
//  - replayed: resident values that were made again, or got back from a tier.
//  - other: the rest. Other bytes that go again, workspace, and what a replay makes a second time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

enum class MemoryLayer : std::uint8_t { parameters, gradients, kept, packed, replayed, other };
inline constexpr std::size_t layer_count = 6;
[[nodiscard]] std::string_view name(MemoryLayer);  // "parameters and optimizer", "gradients", ...

// One number for each layer, from `parameters` to `other`.
struct LayerBytes {
  std::array<Bytes, layer_count> of = {};
  [[nodiscard]] Bytes& operator[](MemoryLayer layer) { return of[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] Bytes operator[](MemoryLayer layer) const { return of[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] Bytes total() const;
  bool operator==(const LayerBytes&) const = default;
};

// By action. The simulation has to be one of this plan, valid, with `live` and `residences`.
[[nodiscard]] std::vector<LayerBytes> layers_of(const Trace&, const Plan&, const Simulation&);

// By action, and one number more: the cost of all actions before it. The last one is the cost of the plan.
[[nodiscard]] std::vector<double> costs_before(const Trace&, const Plan&);

// A stretch of time of equal length for each column, with the layers of the action that has most bytes live in it:
// the peak of the plan is the largest total of its columns.
struct Columns {
  double cost = 0;                   // of the plan: where the last column ends
  std::vector<LayerBytes> layers;    // by column
  std::vector<std::size_t> actions;  // by column: which action that is
};

// At most this many columns, at least 1; none for a plan that does nothing but drop. A plan that costs nothing has its
// actions spread evenly.
[[nodiscard]] Columns columns_of(const Trace&, const Plan&, const Simulation&, std::size_t most);

}  // namespace reprise
