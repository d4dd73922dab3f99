// The CPU's allocator, its meter, and the heap behind them.
#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>

#include <cstring>
#include <string>

#include "torch/libtorch/version_check.h"
#include "torch/memory/device_headers.h"
#include "torch/memory/heap.h"
#include "torch/memory/meter.h"

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

struct alignas(64) Settings {
  std::atomic<Bytes> target{unlimited};  // of resident memory
  std::atomic<bool> keeps_pages{false};  // whatever the limit
  std::atomic<int> filling{0};           // threads that want fresh memory filled
};
// Constant from the start: tensors are made before main.
constinit Meter cpu_meter("cpu");
constinit Settings settings;

[[noreturn]] void no_memory(const char* why, Bytes bytes) {
  c10::profiledCPUMemoryReporter().OutOfMemory(static_cast<std::size_t>(bytes));
  C10_THROW_ERROR(OutOfMemoryError, c10::str("[meter] ", why, ": ", bytes, " bytes wanted, ", live(), " live, limit ",
                                             limit() == unlimited ? "none" : std::to_string(limit())));
}

constexpr int as_it_is = -1;
thread_local int filled_with = as_it_is;  // a byte

// Fills fresh memory as LibTorch's own allocator does for people who look for reads of uninitialized memory, and as
// FilledMemory wants it for this thread.
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

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    if (n == 0) return {nullptr, nullptr, &free_memory, c10::Device(c10::DeviceType::CPU)};
    if (n > static_cast<std::size_t>(largest_bytes)) [[unlikely]]
      no_memory("an impossible size", static_cast<Bytes>(n));
    const std::uint64_t birth = cpu_meter.begin_allocation();
    const Bytes bytes = counted(n);
    const Bytes now = cpu_meter.reserve(bytes);
    if (now == 0) [[unlikely]]
      no_memory("over the limit", bytes);
    const heap::Piece piece = heap::allocate(static_cast<std::size_t>(bytes), settings.target.load(relaxed) - now);
    if (piece.memory == nullptr) [[unlikely]] {
      cpu_meter.freed(bytes);
      no_memory("the system has none left", bytes);
    }
    cpu_meter.allocated(now);
    auto* const header = new (piece.memory) Header;
    header->bytes = bytes;
    header->meter = &cpu_meter;
    header->birth = birth;
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
c10::Allocator* const allocator = [] {
  auto* const made = new Allocator;
  if (runs_as_compiled()) c10::SetCPUAllocator(made, priority);
  return made;
}();

}  // namespace

Meter& cpu() {
  return cpu_meter;
}

void free_memory(void* data) {
  if (data == nullptr) return;
  Header& header = static_cast<Header*>(data)[-1];
  if (header.tag.recording != 0 && is_adopted(header)) return;
  cpu_meter.begin_freeing(header);
  if (header.reported) [[unlikely]]
    c10::profiledCPUMemoryReporter().Delete(data);
  const Bytes bytes = header.bytes;
  heap::release({&header, header.malloced, header.block});
  cpu_meter.freed(bytes);
}

Header* header_of_device_memory(const c10::DataPtr& pointer) {
  return device_headers::find(pointer);
}

bool is_on_device(const Header& header) {
  return header.meter != &cpu_meter;
}

c10::Storage take(Header& header, std::size_t bytes) {
  if (is_on_device(header)) return device_headers::take(header, bytes);
  void* const data = &header + 1;
  untrack(header);
  return {c10::Storage::use_byte_size_t(), bytes,
          c10::DataPtr(data, data, &free_memory, c10::Device(c10::DeviceType::CPU)), nullptr, false};
}

void limit(Bytes limit, Bytes reserve) {
  cpu_meter.limit(limit, reserve);
  if (limit == unlimited || settings.keeps_pages.load(relaxed)) return;
  settings.target.store(resident_target(limit), relaxed);
  shrink(limit);
}

void shrink(Bytes limit) {
  if (limit == unlimited || settings.keeps_pages.load(relaxed)) return;
  heap::shrink(resident_target(limit) - live());
}

bool is_installed() {
  return c10::GetCPUAllocator() == allocator;
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

}  // namespace reprise::internal::meter
