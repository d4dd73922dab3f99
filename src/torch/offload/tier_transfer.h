// One value on its way to a tier and back: what it can be, and the one table of what may become of that.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "torch/recipes/fingerprint.h"

namespace reprise::internal {

enum class TransferState : std::uint8_t {
  to_put,     // the memory has the contents; nobody has begun to put them
  putting,    // somebody does
  put,        // both have them; the memory goes when the program has dropped it
  stored,     // only the tier has them
  to_get,     // there is memory for them; nobody has begun to get them
  getting,    // somebody does
  arrived,    // both have them; the memory is for whoever asks
  reloaded,   // whoever asked has the memory, and compares it if the copy is to be verified
  verified,   // likewise, and it is what was put
  lost,       // nobody has them; a replay may
  failed,     // what was put or came back cannot be trusted: whoever asks is told
  to_remove,  // nobody asks any more, and the tier has them
  removed,
};

struct TransferTransition {
  TransferState from, to;
  const char* when;
};

inline constexpr auto transfer_transitions = [] {
  using enum TransferState;
  return std::to_array<TransferTransition>({
      {to_put, putting, "the thread of the tier begins, or whoever needs the memory"},
      {to_put, removed, "the copy is dropped"},
      {putting, put, "given to a stream, which does it in its order"},
      {putting, stored, "written"},
      {putting, lost, "no room, or it cannot be written"},
      {putting, failed, "the device failed when the contents were read, to be compared later"},
      {putting, to_put, "in the child of a fork, where nobody does"},
      {put, stored, "the program has dropped the memory, or will write there"},
      {put, to_remove, "the copy is dropped"},
      {stored, to_get, "asked for"},
      {stored, to_remove, "the copy is dropped"},
      {stored, lost, "the process ends"},
      {to_get, getting, "the thread of the tier begins, or whoever needs the contents"},
      {to_get, stored, "given up, to have the room"},
      {to_get, to_remove, "the copy is dropped"},
      {to_get, lost, "the process ends"},
      {getting, arrived, "read, or given to a stream"},
      {getting, lost, "it cannot be read, or is damaged"},
      {getting, failed, "the device failed"},
      {getting, to_get, "in the child of a fork, where nobody does"},
      {arrived, reloaded, "handed out"},
      {arrived, stored, "given up, to have the room"},
      {arrived, to_remove, "the copy is dropped"},
      {arrived, lost, "the process ends"},
      {reloaded, verified, "compared with what was put: the same bits"},
      {reloaded, failed, "compared with what was put: other bits"},
      {reloaded, to_get, "asked for again"},
      {reloaded, to_remove, "the copy is dropped"},
      {reloaded, lost, "the process ends"},
      {verified, to_get, "asked for again"},
      {verified, to_remove, "the copy is dropped"},
      {verified, lost, "the process ends"},
      {lost, to_remove, "the copy is dropped, and the tier has what is left"},
      {lost, removed, "the copy is dropped"},
      {failed, to_remove, "the copy is dropped, and the tier has what is left"},
      {failed, removed, "the copy is dropped"},
      {to_remove, removed, "what the tier had is gone"},
  });
}();

[[nodiscard]] constexpr bool may_become(TransferState from, TransferState to) {
  return std::any_of(transfer_transitions.begin(), transfer_transitions.end(),
                     [&](const TransferTransition& one) { return one.from == from && one.to == to; });
}

// A plan has asked for it ahead of time.
[[nodiscard]] constexpr bool is_fetched(TransferState state) {
  return state == TransferState::to_get || state == TransferState::getting || state == TransferState::arrived;
}

// Begin and end of a copy on a stream, by the device's clock.
struct CopySpan {
  c10::Event from, to;
};

// Memory of the device with the contents of a value, or for them.
struct TransferMemory {
  c10::Storage storage;
  std::optional<c10::Stream> stream = {};       // the contents were made on it, or the memory was allocated for it
  std::shared_ptr<const CopySpan> copied = {};  // the last copy from or to it; null: none is under way
};

// What a tier has of a value. When this ends, so does that.
class TierContents {
 public:
  virtual ~TierContents() = default;
  TierContents(const TierContents&) = delete;
  TierContents& operator=(const TierContents&) = delete;

  // Returns the bytes of the tier that they take. In the child of a fork, before the tier is told what is left.
  [[nodiscard]] virtual Bytes mark_at_rest_after_fork() = 0;

  std::shared_ptr<const CopySpan> copied;  // the last copy from or to them; null: it was over when the call returned

 protected:
  TierContents() = default;
};

struct TierTransfer {
  using State = TransferState;

  // ---- from the start ----
  std::uint64_t number = 0;
  std::size_t bytes = 0;
  bool verifies = false;
  // ---- under the lock of the tier, or by whoever is busy with it ----
  TransferMemory memory;
  Fingerprint expected;  // of the contents that were put; empty: not known yet, or nothing is compared
  std::unique_ptr<TierContents> contents;
  // ---- under the lock of the tier ----
  State state = State::to_put;
  double asked_at = 0;         // for what is to be done next, in microseconds
  bool dropped = false;        // to be removed by whoever is busy with it
  std::exception_ptr failure;  // if it is lost, or failed

  [[nodiscard]] bool is_unfinished_put() const { return state == State::to_put || state == State::putting; }
  [[nodiscard]] bool is_in_memory() const { return is_unfinished_put() || state == State::put; }
  [[nodiscard]] bool is_at_rest() const {
    return state == State::stored || state == State::reloaded || state == State::verified;
  }
  [[nodiscard]] bool is_busy() const { return state == State::putting || state == State::getting; }

  // By the table.
  void become(State next) {
    TORCH_INTERNAL_ASSERT_DEBUG_ONLY(may_become(state, next));
    state = next;
  }
};

}  // namespace reprise::internal
