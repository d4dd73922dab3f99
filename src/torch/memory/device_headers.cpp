#include "torch/memory/device_headers.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace reprise::internal {

void DeviceMeter::update_waiting(Bytes were_waiting, Bytes still_waiting) {
  const Bytes back = were_waiting - still_waiting;
  if (back <= 0) return;
  if (waiting_.compare_exchange_strong(were_waiting, still_waiting, std::memory_order_relaxed)) freed(back);
}

namespace device_headers {
namespace {

struct Block : meter::Header {
  void* address = nullptr;
  c10::Device device{c10::DeviceType::CPU};
  c10::DeleterFnPtr free_below = nullptr;
  Bytes rest = 0;
  std::atomic<bool> shared = false;

  [[nodiscard]] Bytes counted() const { return bytes + rest; }
};

// Blocks have addresses of their own, which do not change. Several maps, so that threads seldom meet.
class Table {
 public:
  Block* find(void* address) {
    Part& part = part_of(address);
    const std::scoped_lock lock(part.mutex);
    const auto found = part.blocks.find(address);
    return found == part.blocks.end() ? nullptr : found->second.get();
  }
  void add(std::unique_ptr<Block> block) {
    Part& part = part_of(block->address);
    const std::scoped_lock lock(part.mutex);
    part.blocks[block->address] = std::move(block);
  }
  // nullptr: it is not there.
  std::unique_ptr<Block> remove(void* address) {
    Part& part = part_of(address);
    const std::scoped_lock lock(part.mutex);
    auto block = part.blocks.extract(address);
    return block ? std::move(block.mapped()) : nullptr;
  }
  void lock() {
    for (Part& part : parts_) part.mutex.lock();
  }
  void unlock() {
    for (Part& part : parts_) part.mutex.unlock();
  }

 private:
  struct alignas(64) Part {
    std::mutex mutex;  // nothing else is locked under it
    std::unordered_map<void*, std::unique_ptr<Block>> blocks;
  };
  static constexpr unsigned bits = 4;
  Part& part_of(const void* address) {
    constexpr unsigned unit = 9;  // allocators give whole units of 512 bytes
    return parts_[(reinterpret_cast<std::uintptr_t>(address) >> unit) * 0x9E3779B97F4A7C15u >> (64 - bits)];
  }
  std::array<Part, 1 << bits> parts_;
};

Table& table() {
  static auto& one = *new Table;  // never destroyed: tensors outlive main
  return one;
}

void free_memory(void* address) {
  if (address == nullptr) return;
  Block& block = *table().find(address);
  if (meter::is_adopted(block)) return;
  block.meter->begin_freeing(block);
  const std::unique_ptr<Block> over = table().remove(address);  // before another one has its address
  over->free_below(address);
  auto& meter = static_cast<DeviceMeter&>(*over->meter);
  if (over->shared) {
    meter.add_waiting(over->counted());
  } else {
    meter.freed(over->counted());
  }
}

}  // namespace

void adopt(c10::DataPtr& memory, Bytes bytes, Bytes rest, DeviceMeter& meter) {
  auto block = std::make_unique<Block>();
  block->bytes = bytes;
  block->rest = rest;
  block->meter = &meter;
  block->address = memory.get();
  block->device = memory.device();
  block->free_below = memory.get_deleter();
  table().add(std::move(block));
  (void)memory.compare_exchange_deleter(memory.get_deleter(), &free_memory);
}

c10::DeleterFnPtr deleter() {
  return &free_memory;
}

meter::Header* find(const c10::DataPtr& memory) {
  if (memory.get_deleter() != &free_memory || memory.get_context() == nullptr) return nullptr;
  return table().find(memory.get_context());
}

meter::Header* find(void* address) {
  return table().find(address);
}

void lose(void* address) {
  const std::unique_ptr<Block> lost = table().remove(address);
  if (!lost) return;
  lost->meter->begin_freeing(*lost);
  lost->meter->freed(lost->counted());
}

c10::Storage take(meter::Header& header, std::size_t bytes) {
  const auto& block = static_cast<const Block&>(header);
  meter::untrack(header);
  return {c10::Storage::use_byte_size_t(), bytes,
          c10::DataPtr(block.address, block.address, &free_memory, block.device), nullptr, false};
}

void mark_shared(meter::Header& header) {
  static_cast<Block&>(header).shared = true;
}

AsGiven::AsGiven(const c10::DataPtr& memory) {
  const auto* const block = static_cast<const Block*>(find(memory));
  const c10::DeleterFnPtr deleter = block ? block->free_below : memory.get_deleter();
  memory_ = c10::DataPtr(memory.get(), memory.get_context(), deleter, memory.device());
}

AsGiven::~AsGiven() {
  (void)memory_.release_context();
}

void lock_for_fork() {
  table().lock();
}
void unlock_after_fork() {
  table().unlock();
}

}  // namespace device_headers
}  // namespace reprise::internal
