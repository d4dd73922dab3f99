// Memory for a coded value: allocated after it was reserved, freed before the reservation ends.
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

  // Moves the memory out, ends its reservation and leaves an empty buffer.
  [[nodiscard]] ArrayMemory take_memory();
  // Frees the memory, leaves an empty buffer and returns the reservation.
  [[nodiscard]] Reservation release();

  Reservation room;

 private:
  std::byte* memory_;
};

// For tests of this order: called with the change in bytes, right before they are allocated and right after they were
// freed, by any thread.
inline std::atomic<void (*)(Bytes)> buffer_observer = nullptr;

}  // namespace reprise::internal
