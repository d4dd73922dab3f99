// The meter: LibTorch's CPU allocator for the whole process, there from the moment the library is loaded.
//
// Every allocation carries a 64 byte header with its exact size, so the bytes are known before they are allocated and
// after. Bytes are reserved by compare-and-swap before they are allocated: two threads cannot pass the limit together.
// When a request does not fit, the pressure callback is asked to free something; it may only free, never run an
// operator. When it cannot, the request fails before the first byte over.
//
// An allocation may carry a tag: the value it holds, and of which recording. When it dies, the death callback is told.
// `tracked` bytes are those of tagged allocations that a plan accounts for; live minus tracked are the other bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "reprise/trace/trace.h"

namespace c10 {
struct Storage;
struct StorageImpl;
}  // namespace c10

namespace reprise::internal::heap {
struct Block;
}

namespace reprise::internal::meter {

// Whose bytes these are. Zero: nobody's. Written under the arbiter's lock, read by the death callback.
struct Tag {
  std::uint32_t recording = 0;
  Id value = 0;
};

struct alignas(64) Header {
  Bytes bytes = 0;  // with the header
  Tag tag;
  bool tracked = false;
  bool reported = false;  // to LibTorch's profiler
  // The heap's: where the memory came from.
  void* malloced = nullptr;
  heap::Block* block = nullptr;
};
static_assert(sizeof(Header) == 64);

// What an allocation of n bytes counts: the header, and n rounded up to 64.
[[nodiscard]] constexpr Bytes counted(std::size_t n) {
  return n == 0 ? 0 : static_cast<Bytes>((n + 63) & ~std::size_t{63}) + 64;
}

// The header of a storage's memory; nullptr if it came from elsewhere (from_blob, another allocator) or is empty.
[[nodiscard]] Header* header_of(const c10::StorageImpl&);

// ---- counting ------------------------------------------------------------------------------------------------------

[[nodiscard]] Bytes live();
[[nodiscard]] Bytes tracked();
[[nodiscard]] Bytes other();  // live - tracked
void track(Header&);          // no effect if it is already
void untrack(Header&);

// The most that was live since the last mark; sets the mark to now.
[[nodiscard]] Bytes peak();
void mark_peak();

// The largest of the other bytes since the last call, now included.
[[nodiscard]] Bytes take_other_peak();
// As if so many had been seen since.
void raise_other_peak(Bytes);

// ---- limiting ------------------------------------------------------------------------------------------------------

inline constexpr Bytes unlimited = INT64_MAX;

// Requests beyond `limit` bytes live press; with `reserve` a part of it is kept free for `charge`, and for a request
// that would fail otherwise. Freed memory goes back to the system as far as the process would have more resident than
// this, and a sixty-fourth part, for tensors.
void limit(Bytes limit, Bytes reserve = 0);
[[nodiscard]] Bytes limit();
// What tensors may have of it: the limit without the reserve.
[[nodiscard]] Bytes ceiling();

// Called on the allocating thread with the bytes it wants. Frees what it can; true: try again, false: nothing left. It
// may throw instead, and the allocation fails with that.
using Pressure = bool (*)(Bytes wanted);
// Called on the thread that frees tagged memory, before it is freed. True: it is not freed, somebody has taken it. Must
// not throw.
using Death = bool (*)(Header&);
std::pair<Pressure, Death> callbacks(Pressure, Death);  // returns the former ones

// A storage of its own for memory that is about to be freed: for the death callback.
[[nodiscard]] c10::Storage take(Header&, std::size_t bytes);

// Bytes of our own that count but are not tensors (packed values). Never presses, may use the reserve; false: no room.
[[nodiscard]] bool charge(Bytes);
void discharge(Bytes);

// ---- the process ---------------------------------------------------------------------------------------------------

// Whether LibTorch asks this allocator now; another library may have put its own in front.
[[nodiscard]] bool in_charge();

// Heap behaviour while sessions exist: freed memory is kept and reused, without page faults (heap.h). Limits of
// sessions that are gone are forgotten.
void keep_heap();
// Keeps freed memory whatever the limit, so that steps under one and steps without can be compared.
void keep_all_pages();
// Gives freed memory back to the system.
void give_back();
// Resident bytes of this process, as the system sees them.
[[nodiscard]] Bytes resident();

// ---- contents ------------------------------------------------------------------------------------------------------

// While it exists, memory that this thread allocates has this byte everywhere: what an operator leaves unwritten shows.
class FilledMemory {
 public:
  explicit FilledMemory(std::uint8_t byte);
  ~FilledMemory();
  FilledMemory(const FilledMemory&) = delete;
  FilledMemory& operator=(const FilledMemory&) = delete;

 private:
  const int before_;
};

// ---- for tests -----------------------------------------------------------------------------------------------------

// After this many more allocations one fails with std::bad_alloc, once: 0 is the next one; -1: none.
void fail_after(std::int64_t allocations);
[[nodiscard]] std::uint64_t allocations();

}  // namespace reprise::internal::meter
