// The interface between a chain and states whose type the chain does not know. No program needs to name what is
// declared here.
//
// The caller's states and tapes are in numbered slots, and the chain names them by the slot. So a state is never
// wrapped, allocated or copied on its way through the chain.
#pragma once

#include <functional>
#include <optional>

#include "reprise/export.h"
#include "reprise/store/array.h"
#include "reprise/trace/timeline.h"

namespace reprise::internal {

// The states and tapes of a chain, and the closures that work on them.
class REPRISE_EXPORT ChainStates {
 public:
  // The slot of a state that the caller holds. It is neither dropped nor counted.
  static constexpr Id lent = -2;

  struct Made {
    Id state = nowhere;
    Id tape = nowhere;   // if it was wanted
    Bytes bytes = 0;     // of the state
    Bytes replaced = 0;  // of the state that was in its slot before
  };

  virtual ~ChainStates() = default;

  // Runs forward of the layer with this number, and puts what it makes into free slots.
  [[nodiscard]] virtual Made forward(int number, Id state, bool with_tape) = 0;
  // True if forward works in place, so that a state that is not needed afterwards need not be copied before.
  [[nodiscard]] virtual bool is_in_place() const = 0;
  // True if forward returns a state, which can take the slot of one that is not needed afterwards.
  [[nodiscard]] virtual bool is_by_value() const = 0;
  // Runs forward of one of these two kinds: the state after the layer takes the slot of the state before it. If forward
  // returns the state, there are both of them for a moment.
  [[nodiscard]] virtual Made advance(int number, Id state, bool with_tape) = 0;
  [[nodiscard]] virtual bool has_backward() const = 0;
  // Runs backward of the layer with this number. The tape is ignored if there are none.
  virtual void backward(int number, Id state, Id tape) = 0;

  [[nodiscard]] virtual Bytes bytes(Id state) const = 0;
  [[nodiscard]] virtual Bytes tape_bytes(Id tape) const = 0;
  // Returns the bytes of the gradient that backward is about to work on. Empty if its type has no StateTraits.
  [[nodiscard]] virtual std::optional<Bytes> gradient_bytes() const = 0;
  // Free a slot and return the bytes that it held.
  virtual Bytes drop(Id state) = 0;
  virtual Bytes drop_tape(Id tape) = 0;
  // Frees all slots.
  virtual void clear() noexcept = 0;
  // Sets whether dropped states are held as spares for closures that are given a state to write to, or are freed.
  virtual void hold_spares(bool) = 0;
  [[nodiscard]] virtual Bytes spare_bytes() const = 0;

  // Makes a copy. Only for types that can be copied.
  [[nodiscard]] virtual Id clone(Id state) = 0;
  // Shows a state as an array, and makes one of an array. Only for types that can be coded.
  virtual void encode(Id state, const std::function<void(const ArrayView&)>& use) const = 0;
  [[nodiscard]] virtual Id decode(Array) = 0;
  [[nodiscard]] virtual bool is_codable() const = 0;
  // True if equal states have equal bytes as arrays.
  [[nodiscard]] virtual bool is_comparable() const = 0;

  // Do the same for the gradient that backward works on.
  virtual void encode_gradient(const std::function<void(const ArrayView&)>& use) const = 0;
  virtual void decode_gradient(Array) = 0;
  [[nodiscard]] virtual bool is_gradient_codable() const = 0;
};

}  // namespace reprise::internal
