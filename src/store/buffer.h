// Memory for a coded value: allocated after it was reserved, freed before it is given back.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "reprise/store/array.h"
#include "reprise/trace/trace.h"
#include "store/ledger.h"

namespace reprise::internal {

class Buffer {
 public:
  // Allocates what was reserved. Throws std::bad_alloc.
  explicit Buffer(Reservation);
  ~Buffer();
  Buffer(Buffer&&) noexcept;  // leaves an empty one
  Buffer& operator=(Buffer&&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() { return {memory_, static_cast<std::size_t>(room.bytes())}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {memory_, static_cast<std::size_t>(room.bytes())}; }
  void shrink(Bytes);

  // Gives the memory away and leaves an empty buffer; nothing is reserved for it any more.
  [[nodiscard]] ArrayMemory give_away();
  // Frees the memory and leaves an empty buffer; what is returned is still reserved.
  [[nodiscard]] Reservation release();

  Reservation room;

 private:
  std::byte* memory_;
};

// For tests, to prove the above: told how many bytes more (or less) buffers hold, right before they are allocated and
// right after they were freed. By any thread.
inline std::atomic<void (*)(Bytes)> buffer_witness = nullptr;

}  // namespace reprise::internal
