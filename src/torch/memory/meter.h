// The meter: the bytes of a device (counted_device.h), counted and limited. That of the CPU is LibTorch's CPU allocator
// for the whole process, there from the moment the library is loaded.
//
// Every allocation has a header with its exact size, on the CPU in front of the memory, so the bytes are known before
// they are allocated and after. Bytes are reserved by compare-and-swap before they are allocated: two threads cannot
// pass the limit together. When a request does not fit, the pressure callback is asked to free something; it may only
// free, never run an operator. When it cannot, the request fails before the first byte over.
//
// An allocation may carry a tag: the value it holds, and of which recording. When it dies, the on_free callback is
// called. `tracked` bytes are those of tagged allocations that a plan accounts for; live minus tracked are the other
// bytes.
#pragma once

#include <c10/core/StorageImpl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "reprise/trace/trace.h"

namespace c10 {
struct Storage;
}  // namespace c10

namespace reprise::internal {

class Meter;
namespace heap {
struct Block;
}

namespace meter {

inline constexpr Bytes unlimited = INT64_MAX;

// Whose bytes these are. Zero: of no recording. Written under the arbiter's lock, read by the on_free callback.
struct Tag {
  std::uint32_t recording = 0;
  Id value = 0;
};

struct alignas(64) Header {
  Bytes bytes = 0;  // with the header, where it is in front
  Tag tag;
  Meter* meter = nullptr;  // that counts them
  bool tracked = false;
  bool reported = false;  // to LibTorch's profiler
  // The heap's: where the memory came from.
  void* malloced = nullptr;
  heap::Block* block = nullptr;
  std::uint64_t birth = 0;  // on the CPU: how many allocations came before it
};
static_assert(sizeof(Header) == 64);

// Called on the allocating thread with the bytes that it wants of a device. Frees what it can; true: try again, false:
// nothing left. It may throw instead, and the allocation fails with that.
using Pressure = bool (*)(Meter&, Bytes wanted);
// Called on the thread that frees tagged memory, before it is freed. True: it is not freed, but taken over. Must not
// throw.
using OnFree = bool (*)(Header&);
// Sets those of all devices. Returns the former ones.
std::pair<Pressure, OnFree> callbacks(Pressure, OnFree);
// Asks the on_free callback, if the memory is tagged. Returns whether it has taken the memory over.
[[nodiscard]] bool is_adopted(Header&);

}  // namespace meter

// The bytes of one device. Never destroyed: tensors are made before main and outlive it.
class Meter {
 public:
  // `device`: the device, as LibTorch calls it.
  constexpr explicit Meter(const char* device) : device_(device) {}
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  [[nodiscard]] const char* device() const { return device_; }

  // ---- counting ----
  [[nodiscard]] Bytes live() const { return counters_.live.load(relaxed); }
  [[nodiscard]] Bytes tracked() const { return counters_.tracked.load(relaxed); }
  [[nodiscard]] Bytes other() const { return live() - tracked(); }
  void track(meter::Header&);  // no effect if it is already
  void untrack(meter::Header&);

  // Returns the most that was live since the last mark; mark_peak() sets the mark to now.
  [[nodiscard]] Bytes peak() const { return counters_.peak.load(relaxed); }
  void mark_peak() { counters_.peak.store(live(), relaxed); }

  // Returns the largest of the other bytes since the last call, now included.
  [[nodiscard]] Bytes take_other_peak();
  // Raises the recorded peak of other bytes to at least `bytes`.
  void raise_other_peak(Bytes bytes) { raise(counters_.other_peak, bytes); }

  // ---- limiting ----
  // Requests beyond `limit` bytes live press; with `reserve` a part of it is kept free for `charge`, and for a request
  // that would fail otherwise.
  void limit(Bytes limit, Bytes reserve);
  [[nodiscard]] Bytes limit() const { return settings_.limit.load(relaxed); }
  // Returns what tensors may have of it: the limit without the reserve.
  [[nodiscard]] Bytes ceiling() const { return settings_.ceiling.load(relaxed); }

  // Reserves bytes of our own that count but are not tensors (packed values). Never presses, may use the reserve;
  // false: no room.
  [[nodiscard]] bool charge(Bytes);
  void discharge(Bytes bytes) { counters_.live.fetch_sub(bytes, relaxed); }

  // ---- for the allocator of the device ----
  // One more is asked for: returns how many came before it. Throws std::bad_alloc if it is the one that shall fail.
  std::uint64_t begin_allocation() {
    const std::uint64_t before = counters_.allocations.fetch_add(1, relaxed);
    if (before == settings_.fails_at.load(relaxed)) [[unlikely]]
      throw std::bad_alloc();
    return before;
  }
  // Adds bytes to the live ones, which are not allocated yet, and returns what is live with them, as no other thread
  // gets it. Presses if they do not fit; zero: they do not. Throws what the pressure throws.
  [[nodiscard]] Bytes reserve(Bytes bytes) {
    if (const Bytes now = reserve_within(bytes, ceiling()); now != 0) [[likely]]
      return now;
    return press_and_reserve(bytes);
  }
  // Presses for as many bytes beyond all that fits: they fit, but there is no memory for them in one piece. False:
  // nothing went.
  [[nodiscard]] bool press_further(Bytes bytes);
  // Counts bytes that are allocated: `live_now` is what reserving them returned.
  void allocated(Bytes live_now) {
    raise(counters_.peak, live_now);
    raise(counters_.other_peak, live_now - tracked());
  }
  // Counts memory that is about to be freed; and its bytes, after everything else: another thread may take them the
  // moment they are.
  void begin_freeing(const meter::Header& header) {
    if (header.tracked) counters_.tracked.fetch_sub(header.bytes, relaxed);
  }
  void freed(Bytes bytes) { counters_.live.fetch_sub(bytes, relaxed); }

  // ---- for tests ----
  // After this many more allocations one fails with std::bad_alloc, once: 0 is the next one; -1: none.
  void fail_after(std::int64_t allocations);
  [[nodiscard]] std::uint64_t allocations() const { return counters_.allocations.load(relaxed); }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  // What every allocation writes, apart from what it only reads: a thread that allocates invalidates the first line of
  // the others, never the second.
  struct alignas(64) Counters {
    std::atomic<Bytes> live{0}, tracked{0}, peak{0}, other_peak{0};
    std::atomic<std::uint64_t> allocations{0};
  };
  struct alignas(64) Settings {
    std::atomic<Bytes> limit{meter::unlimited};
    std::atomic<Bytes> ceiling{meter::unlimited};  // of tensors: the limit without the reserve
    std::atomic<std::uint64_t> fails_at{UINT64_MAX};
  };

  static void raise(std::atomic<Bytes>& highest, Bytes bytes) {
    Bytes before = highest.load(relaxed);
    while (bytes > before && !highest.compare_exchange_weak(before, bytes, relaxed)) {
    }
  }
  // Returns the live bytes with these. Zero if they do not fit.
  Bytes reserve_within(Bytes bytes, Bytes most) {
    Bytes before = live();
    do {
      if (bytes > most - before) return 0;
    } while (!counters_.live.compare_exchange_weak(before, before + bytes, relaxed));
    return before + bytes;
  }
  Bytes press_and_reserve(Bytes bytes);

  const char* const device_;
  Counters counters_;
  Settings settings_;
};

namespace meter {

inline void track(Header& header) {
  header.meter->track(header);
}
inline void untrack(Header& header) {
  header.meter->untrack(header);
}

// Frees memory of the CPU's allocator. By this deleter its memory is known.
void free_memory(void* data);
[[nodiscard]] Header* header_of_device_memory(const c10::DataPtr&);

// Returns the header of a storage's memory. Null if it came from elsewhere (from_blob, another allocator) or is empty.
[[nodiscard]] inline Header* header_of(const c10::StorageImpl& storage) {
  // Nothing is changed. The other accessors throw for storages whose data must not be touched.
  const c10::DataPtr& pointer = const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
  void* const data = pointer.get_context();
  if (data == nullptr) return nullptr;
  if (pointer.get_deleter() == &free_memory) [[likely]]
    return static_cast<Header*>(data) - 1;
  return storage.device_type() == c10::DeviceType::CPU ? nullptr : header_of_device_memory(pointer);
}

// Returns whether the memory is not the CPU's: the header is not in front of it, and its contents cannot be read.
[[nodiscard]] bool is_on_device(const Header&);
// Returns what there is room for behind the header, or without.
[[nodiscard]] inline std::size_t bytes_of_contents(const Header& header) {
  return static_cast<std::size_t>(header.bytes) - (is_on_device(header) ? 0 : sizeof(Header));
}

// Returns a storage of its own for memory that is about to be freed: for the on_free callback.
[[nodiscard]] c10::Storage take(Header&, std::size_t bytes);

// ---- the CPU -------------------------------------------------------------------------------------------------------

[[nodiscard]] Meter& cpu();

// Returns what an allocation of n bytes counts: the header, and n rounded up to 64.
[[nodiscard]] constexpr Bytes counted(std::size_t n) {
  return n == 0 ? 0 : static_cast<Bytes>((n + 63) & ~std::size_t{63}) + 64;
}

// Its meter, in short.
[[nodiscard]] inline Bytes live() {
  return cpu().live();
}
[[nodiscard]] inline Bytes tracked() {
  return cpu().tracked();
}
[[nodiscard]] inline Bytes other() {
  return cpu().other();
}
[[nodiscard]] inline Bytes peak() {
  return cpu().peak();
}
inline void mark_peak() {
  cpu().mark_peak();
}
[[nodiscard]] inline Bytes take_other_peak() {
  return cpu().take_other_peak();
}
inline void raise_other_peak(Bytes bytes) {
  cpu().raise_other_peak(bytes);
}
[[nodiscard]] inline bool charge(Bytes bytes) {
  return cpu().charge(bytes);
}
inline void discharge(Bytes bytes) {
  cpu().discharge(bytes);
}
inline void fail_after(std::int64_t allocations) {
  cpu().fail_after(allocations);
}
[[nodiscard]] inline std::uint64_t allocations() {
  return cpu().allocations();
}

// Limits all of it. Freed memory goes back to the system as well, if the process would have more resident than the
// limit, and a sixty-fourth part, for tensors.
void limit(Bytes limit, Bytes reserve = 0);
[[nodiscard]] inline Bytes limit() {
  return cpu().limit();
}
[[nodiscard]] inline Bytes ceiling() {
  return cpu().ceiling();
}

// Returns whether LibTorch asks this allocator now; another library may have installed its own.
[[nodiscard]] bool is_installed();

// Keeps and reuses freed memory, without page faults (heap.h), because there are sessions. Limits of sessions that are
// gone are dropped.
void keep_heap();
// Keeps freed memory whatever the limit, so that steps under one and steps without can be compared.
void keep_all_pages();
// Gives freed memory back to the system, all of it, or what is resident beyond this limit.
void give_back();
void shrink(Bytes limit);
// Returns the resident bytes of this process, as the system sees them.
[[nodiscard]] Bytes resident();

// While it exists, memory that this thread allocates has this byte everywhere, so that uninitialized elements show.
class FilledMemory {
 public:
  explicit FilledMemory(std::uint8_t byte);
  ~FilledMemory();
  FilledMemory(const FilledMemory&) = delete;
  FilledMemory& operator=(const FilledMemory&) = delete;

 private:
  const int before_;
};

}  // namespace meter
}  // namespace reprise::internal
