// The pass that goes on: which layers it goes through, and how far it has come.
//
// A pass may begin with a later layer, and a pass that is resumed goes through its layers in parts, the last ones
// first: forward from a state that was kept to where the part before ended, and backward. Each part has a plan of its
// own, in which its first layer is number 0. `first` is added to every layer and state that is named outside of the
// part: to the caller, in errors, and in tiers.
//
//   idle -> forward      a pass begins
//   idle -> backward     backward begins with states that were saved by hand
//   forward -> backward  forward is over, or was over when the pass was kept
//   backward -> forward  a part is done, and the one before it runs forward once more
//   any -> idle          backward is over, something has thrown, or another pass begins
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "chain/pass_actions.h"
#include "reprise/trace/timeline.h"

namespace reprise::internal {

struct ChainPass {
  enum class Phase : std::uint8_t { idle, forward, backward };
  enum class LoopOwner : std::uint8_t { engine, caller };

  Phase phase = Phase::idle;
  LoopOwner loop_owner = LoopOwner::engine;
  std::uint64_t number = 0;  // of passes begun, this one included
  Id start = 0;              // layer that the pass begins with

  // The part.
  std::optional<PassActions> actions = {};  // those of the last pass stay when it is over
  Id first = 0;                             // layer
  Id position = 0;              // in forward the layer that is next; in backward the number of layers that are left
  bool is_open = false;         // there is a part to go backward through
  bool has_run_before = false;  // all its layers have run forward in this pass or in the one that is resumed
  bool is_catching_up = false;  // in backward, with the forward of a new plan

  Id result = nowhere;  // slot of the state that forward made last, on its way to the caller

  [[nodiscard]] bool is_forward() const { return phase == Phase::forward; }
  [[nodiscard]] bool is_backward() const { return phase == Phase::backward; }
  // True if forward of this layer has run in this part already.
  [[nodiscard]] bool is_replay(Id layer) const { return is_backward() || layer < position; }
  // Returns the number that the state after a layer of the chain has in the part. Below zero if the part begins later.
  [[nodiscard]] Id state_after(Id layer) const { return layer + 1 - first; }
  [[nodiscard]] Id take_result() { return std::exchange(result, nowhere); }

  void begin(LoopOwner owner, Id first_layer) {
    *this = {.phase = Phase::forward, .loop_owner = owner, .number = number + 1, .start = first_layer};
    first = first_layer;
  }
  void begin_part(Id first_layer) {
    phase = Phase::forward;
    first = first_layer;
    position = 0;
  }
  void end() noexcept { *this = {.number = number, .actions = std::move(actions)}; }
};

}  // namespace reprise::internal
