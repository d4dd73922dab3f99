#include "torch/meter.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "torch/heap.h"
#include "torch/running_libtorch.h"

C10_DECLARE_bool(caffe2_cpu_allocator_do_zero_fill);
C10_DECLARE_bool(caffe2_cpu_allocator_do_junk_fill);

namespace reprise::internal::meter {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// Resident memory may pass the limit by a sixty-fourth part: freed memory lies between what is live, and the tighter
// it is held the more pages have to move. It is that of the last limit there was, also while none is in force: between
// two steps more may be live, but no more freed memory is kept for it.
constexpr Bytes resident_target(Bytes limit) {
  return limit > largest_bytes ? unlimited : limit + limit / 64;
}

// What every allocation writes, apart from what it only reads: a thread that allocates takes the first line away from
// the others, never the second.
struct alignas(64) Counters {
  std::atomic<Bytes> live{0}, tracked{0}, peak{0}, other_peak{0};
  std::atomic<std::uint64_t> allocations{0};
};
struct alignas(64) Settings {
  std::atomic<Bytes> limit{unlimited};
  std::atomic<Bytes> ceiling{unlimited};  // of tensors: the limit without the reserve
  std::atomic<Bytes> target{unlimited};   // of resident memory
  std::atomic<bool> keeps_pages{false};   // whatever the limit
  std::atomic<int> filling{0};            // threads that want fresh memory filled
  std::atomic<std::uint64_t> fails_at{UINT64_MAX};
  std::atomic<Pressure> pressure{nullptr};
  std::atomic<Death> death{nullptr};
};
// Constant from the start and never destroyed: tensors are made before main and outlive it.
constinit Counters counters;
constinit Settings settings;

void raise(std::atomic<Bytes>& highest, Bytes bytes) {
  Bytes before = highest.load(relaxed);
  while (bytes > before && !highest.compare_exchange_weak(before, bytes, relaxed)) {
  }
}

void remember(Bytes live_now) {
  raise(counters.peak, live_now);
  raise(counters.other_peak, live_now - counters.tracked.load(relaxed));
}

// Adds the bytes to the live ones if that keeps them within the ceiling; zero: it does not. The result is what is live
// with them, as no other thread gets it.
Bytes reserve(Bytes bytes, Bytes ceiling) {
  Bytes before = counters.live.load(relaxed);
  do {
    if (bytes > ceiling - before) return 0;
  } while (!counters.live.compare_exchange_weak(before, before + bytes, relaxed));
  return before + bytes;
}

[[noreturn]] void no_memory(const char* why, Bytes bytes) {
  c10::profiledCPUMemoryReporter().OutOfMemory(static_cast<std::size_t>(bytes));
  C10_THROW_ERROR(OutOfMemoryError, c10::str("[meter] ", why, ": ", bytes, " bytes wanted, ", live(), " live, limit ",
                                             limit() == unlimited ? "none" : std::to_string(limit())));
}

[[gnu::noinline]] Bytes press_and_reserve(Bytes bytes) {
  const Pressure press = settings.pressure.load(std::memory_order_acquire);
  // Another thread may take what was freed, or the reserve: then it is pressed again, so that an error is the policy's.
  for (int refused = 0; press != nullptr && refused < 100;) {
    const bool freed = press(bytes);
    const Bytes most = (freed ? settings.ceiling : settings.limit).load(relaxed);
    if (const Bytes now = reserve(bytes, most); now != 0) return now;
    refused += freed ? 0 : 1;
  }
  if (const Bytes now = reserve(bytes, settings.limit.load(relaxed)); now != 0) return now;
  no_memory("over the limit", bytes);
}

constexpr int as_it_is = -1;
thread_local int filled_with = as_it_is;  // a byte

// What LibTorch's own allocator does for people who look for reads of memory that nobody wrote, and what FilledMemory
// does for this thread.
void fill(void* data, std::size_t bytes) {
  if (filled_with != as_it_is) {
    std::memset(data, filled_with, bytes);
  } else if (FLAGS_caffe2_cpu_allocator_do_zero_fill) {
    std::memset(data, 0, bytes);
  } else if (FLAGS_caffe2_cpu_allocator_do_junk_fill) {
    constexpr std::uint32_t junk = 0x7fedbeef;  // not a number, or a very large one
    auto* const words = static_cast<std::uint32_t*>(data);
    for (std::size_t i = 0; i < (bytes + 3) / 4; ++i) words[i] = junk;
  }
}

// As LibTorch's own allocator does.
void report(Header& header, std::size_t bytes) {
  if (!FLAGS_caffe2_report_cpu_memory_usage && !c10::memoryProfilingEnabled()) [[likely]]
    return;
  header.reported = true;
  c10::profiledCPUMemoryReporter().New(&header + 1, bytes);
}

void free_memory(void* data) {
  if (data == nullptr) return;
  Header& header = static_cast<Header*>(data)[-1];
  if (header.tag.recording != 0) {
    if (const Death died = settings.death.load(std::memory_order_acquire); died && died(header)) return;
  }
  if (header.tracked) counters.tracked.fetch_sub(header.bytes, relaxed);
  if (header.reported) [[unlikely]]
    c10::profiledCPUMemoryReporter().Delete(data);
  const Bytes bytes = header.bytes;
  heap::release({&header, header.malloced, header.block});
  counters.live.fetch_sub(bytes, relaxed);  // last: another thread may take them the moment they are free
}

class Meter final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    if (n == 0) return {nullptr, nullptr, &free_memory, c10::Device(c10::DeviceType::CPU)};
    if (n > static_cast<std::size_t>(largest_bytes)) [[unlikely]]
      no_memory("a size nobody has", static_cast<Bytes>(n));
    if (counters.allocations.fetch_add(1, relaxed) == settings.fails_at.load(relaxed)) [[unlikely]]
      throw std::bad_alloc();
    const Bytes bytes = counted(n);
    Bytes now = reserve(bytes, settings.ceiling.load(relaxed));
    if (now == 0) [[unlikely]]
      now = press_and_reserve(bytes);
    const heap::Piece piece = heap::allocate(static_cast<std::size_t>(bytes), settings.target.load(relaxed) - now);
    if (piece.memory == nullptr) [[unlikely]] {
      counters.live.fetch_sub(bytes, relaxed);
      no_memory("the system has none left", bytes);
    }
    remember(now);
    auto* const header = new (piece.memory) Header;
    header->bytes = bytes;
    header->malloced = piece.malloced;
    header->block = piece.block;
    void* const data = header + 1;
    if (FLAGS_caffe2_cpu_allocator_do_zero_fill || FLAGS_caffe2_cpu_allocator_do_junk_fill ||
        settings.filling.load(relaxed) != 0) [[unlikely]]
      fill(data, n);
    report(*header, n);
    return {data, data, &free_memory, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

// LibTorch's own has priority 0. Never destroyed, as above.
constexpr std::uint8_t priority = 100;
c10::Allocator* const meter = [] {
  auto* const made = new Meter;
  if (runs_as_compiled()) c10::SetCPUAllocator(made, priority);
  return made;
}();

}  // namespace

Header* header_of(const c10::StorageImpl& storage) {
  // Nothing is changed. The other accessors throw for storages whose data nobody may touch.
  const c10::DataPtr& pointer = const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
  void* const data = pointer.get_context();
  if (data == nullptr || pointer.get_deleter() != &free_memory) return nullptr;
  return static_cast<Header*>(data) - 1;
}

c10::Storage take(Header& header, std::size_t bytes) {
  void* const data = &header + 1;
  untrack(header);
  return {c10::Storage::use_byte_size_t(), bytes,
          c10::DataPtr(data, data, &free_memory, c10::Device(c10::DeviceType::CPU)), nullptr, false};
}

Bytes live() {
  return counters.live.load(relaxed);
}
Bytes tracked() {
  return counters.tracked.load(relaxed);
}
Bytes other() {
  return live() - tracked();
}

void track(Header& header) {
  if (header.tracked) return;
  header.tracked = true;
  counters.tracked.fetch_add(header.bytes, relaxed);
}

void untrack(Header& header) {
  if (!header.tracked) return;
  header.tracked = false;
  counters.tracked.fetch_sub(header.bytes, relaxed);
  raise(counters.other_peak, other());
}

Bytes peak() {
  return counters.peak.load(relaxed);
}
void mark_peak() {
  counters.peak.store(live(), relaxed);
}

Bytes take_other_peak() {
  const Bytes now = other();
  return std::max(now, counters.other_peak.exchange(now, relaxed));
}

void raise_other_peak(Bytes bytes) {
  raise(counters.other_peak, bytes);
}

void limit(Bytes limit, Bytes reserve) {
  settings.limit.store(limit, relaxed);
  settings.ceiling.store(limit - reserve, relaxed);
  if (limit == unlimited || settings.keeps_pages.load(relaxed)) return;
  settings.target.store(resident_target(limit), relaxed);
  heap::shrink(resident_target(limit) - live());
}

Bytes limit() {
  return settings.limit.load(relaxed);
}

Bytes ceiling() {
  return settings.ceiling.load(relaxed);
}

std::pair<Pressure, Death> callbacks(Pressure pressure, Death death) {
  return {settings.pressure.exchange(pressure), settings.death.exchange(death)};
}

bool charge(Bytes bytes) {
  const Bytes now = reserve(bytes, settings.limit.load(relaxed));
  if (now == 0) return false;
  remember(now);
  return true;
}

void discharge(Bytes bytes) {
  counters.live.fetch_sub(bytes, relaxed);
}

bool in_charge() {
  return c10::GetCPUAllocator() == meter;
}

void keep_heap() {
  heap::keep();
  settings.target.store(resident_target(limit()), relaxed);
}

void keep_all_pages() {
  settings.keeps_pages.store(true, relaxed);
}

void give_back() {
  heap::give_back();
}
Bytes resident() {
  return heap::resident();
}

FilledMemory::FilledMemory(std::uint8_t byte) : before_(std::exchange(filled_with, byte)) {
  settings.filling.fetch_add(1, relaxed);
}
FilledMemory::~FilledMemory() {
  settings.filling.fetch_sub(1, relaxed);
  filled_with = before_;
}

void fail_after(std::int64_t allocations) {
  settings.fails_at.store(allocations < 0 ? UINT64_MAX : meter::allocations() + static_cast<std::uint64_t>(allocations),
                          relaxed);
}
std::uint64_t allocations() {
  return counters.allocations.load(relaxed);
}

}  // namespace reprise::internal::meter
