// Splits the live bytes of a plan into layers, at every action or for each column of a picture.
//
// The layers together are Simulation::live, to the byte:
//  - parameters: bytes that are live throughout. The smallest `other` of all moments, and values from outside that the
//    program holds from the first moment to the last: parameters, optimizer state, the batch.
//  - gradients: other bytes that come during the step and stay until its end: the smallest `other` from the moment on,
//    without the parameters.
//  - kept: resident values since they were first made, or came from outside.
//  - packed: copies in tiers that count in the budget.
//  - replayed: resident values that were made again, or got back from a tier.
//  - other: the rest. Other bytes that go again, workspace, and values that a replay makes a second time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

enum class MemoryLayer : std::uint8_t { parameters, gradients, kept, packed, replayed, other };
inline constexpr std::size_t layer_count = 6;
[[nodiscard]] std::string_view name(MemoryLayer);  // "parameters and optimizer", "gradients", ...
// How styles of pictures and pages call them, in their order.
inline constexpr std::array<const char*, layer_count> layer_classes = {"parameters", "gradients", "kept",
                                                                       "packed",     "replayed",  "other"};

// One number for each layer, from `parameters` to `other`.
struct LayerBytes {
  std::array<Bytes, layer_count> of = {};
  [[nodiscard]] Bytes& operator[](MemoryLayer layer) { return of[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] Bytes operator[](MemoryLayer layer) const { return of[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] Bytes total() const;
  bool operator==(const LayerBytes&) const = default;
};

// Returns the layers by action. The simulation has to be one of this plan, valid, with `live` and `residences`.
[[nodiscard]] std::vector<LayerBytes> layers_of(const Trace&, const Plan&, const Simulation&);

// Returns, by action, the bytes of copies in a tier. The simulation is as for `layers_of`.
[[nodiscard]] std::vector<Bytes> bytes_in(const Plan&, const Simulation&, Id tier);

// Returns, by action of a valid plan, what the plan has cost when it comes to it, waiting included, and one number
// more: the cost of the plan.
[[nodiscard]] std::vector<double> costs_before(const Trace&, const Plan&);

// Columns of a picture. Each is a stretch of time of equal length, with the layers of the action that has most bytes
// live in it: the peak of the plan is the largest total of its columns.
struct Columns {
  double cost = 0;                   // of the plan: where the last column ends
  std::vector<LayerBytes> layers;    // by column
  std::vector<std::size_t> actions;  // by column: the action with most bytes live
};

// Returns at most this many columns, at least 1; none for a plan that does nothing but drop. A plan that costs nothing
// has its actions spread evenly.
[[nodiscard]] Columns columns_of(const Trace&, const Plan&, const Simulation&, std::size_t most);

}  // namespace reprise::internal
