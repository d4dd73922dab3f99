// The allocator of the simulated accelerator as LibTorch sees it, and what tests ask about its memory.
#include "accelerator/device_allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "accelerator/accelerator.h"
#include "accelerator/device_pool.h"
#include "accelerator/kernel_rules.h"
#include "accelerator/registration.h"

namespace reprise::testing::accelerator {
namespace {

std::size_t unit = 512;

std::atomic<std::int64_t> until_failure{-1};  // allocations

void free_memory(void* data) {
  if (data != nullptr) pool_of(device_at(data)).free(data);
}

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    const c10::Device device(type, current_device());
    if (n == 0) return {nullptr, nullptr, &free_memory, device};
    count_allocation();
    const bool fails = until_failure.load() >= 0 && until_failure.fetch_sub(1) == 0;
    const std::size_t bytes = (n + unit - 1) / unit * unit;
    DevicePool& pool = pool_of(device.index());
    void* const data = fails ? nullptr : pool.allocate(bytes, stream_of(current_stream()));
    if (data == nullptr) {
      const auto stats = pool.stats();
      C10_THROW_ERROR(
          OutOfMemoryError,
          c10::str("[accelerator] out of memory: ", bytes, " bytes wanted, ", stats.allocated_bytes[every_kind].current,
                   " live, ", stats.reserved_bytes[every_kind].current, " reserved of ", pool.capacity()));
    }
    return {data, data, &free_memory, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    stream_of(current_stream()).launch({"copy_data", static_cast<std::int64_t>(2 * bytes)}, [=] {
      std::memcpy(kernel_address(to), kernel_address(from), bytes);
    });
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { empty_cache(); }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    if (data.get() == nullptr || data.get_deleter() != &free_memory) return;
    pool_of(device_at(data.get())).used_by(data.get(), stream_of(stream));
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return pool_of(device).stats();
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override { pool_of(device).reset_accumulated(); }
  void resetPeakStats(c10::DeviceIndex device) override { pool_of(device).reset_peaks(); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const std::size_t total = pool_of(device).capacity();
    const auto reserved = static_cast<std::size_t>(pool_of(device).stats().reserved_bytes[every_kind].current);
    return {total - std::min(total, reserved), total};
  }
};

}  // namespace

void register_allocator(const Like& like) {
  if (like.exact_statistics) unit = 1;
  c10::SetAllocator(type, new DeviceAllocator);
}

void record_stream(const c10::DataPtr& data, c10::Stream stream) {
  c10::getDeviceAllocator(type)->recordStream(data, stream);
}

Memory memory(c10::DeviceIndex device) {
  const auto stats = pool_of(device).stats();
  Memory now;
  now.live = stats.allocated_bytes[every_kind].current;
  now.waiting = stats.active_bytes[every_kind].current - now.live;
  now.reserved = stats.reserved_bytes[every_kind].current;
  now.live_peak = stats.allocated_bytes[every_kind].peak;
  now.active_peak = stats.active_bytes[every_kind].peak;
  now.reserved_peak = stats.reserved_bytes[every_kind].peak;
  return now;
}
void mark_peak(c10::DeviceIndex device) {
  pool_of(device).reset_peaks();
}
void empty_cache() {
  for (int device = 0; device < device_count(); ++device) pool_of(static_cast<c10::DeviceIndex>(device)).empty_cache();
}
void capacity(std::int64_t bytes, c10::DeviceIndex device) {
  pool_of(device).capacity(static_cast<std::size_t>(bytes));
}
void segments_of(std::int64_t bytes, c10::DeviceIndex device) {
  pool_of(device).segments_of(static_cast<std::size_t>(bytes));
}

void fail_allocation_after(std::int64_t allocations) {
  until_failure = allocations;
}

}  // namespace reprise::testing::accelerator
