#include "accelerator/pinned_memory.h"

#include <ATen/core/CachingHostAllocator.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "accelerator/device_memory.h"
#include "accelerator/registration.h"

namespace reprise::testing::accelerator {
namespace {

struct Piece {
  std::size_t bytes = 0;
  bool freed = false;
  std::vector<std::pair<DeviceStream*, DeviceStream::Ticket>> waits_for;
};

struct Pieces {
  std::mutex mutex;
  std::map<const char*, Piece> by_address;
  at::HostStats stats;
};
Pieces& pieces() {
  static auto& all = *new Pieces;  // never destroyed: tensors outlive main
  return all;
}

std::map<const char*, Piece>::iterator find(const void* address) {
  auto& all = pieces().by_address;
  const auto* const at = static_cast<const char*>(address);
  auto found = all.upper_bound(at);
  if (found == all.begin()) return all.end();
  --found;
  return at < found->first + found->second.bytes && !found->second.freed ? found : all.end();
}

// Gives back what was freed and is no longer used.
void collect() {
  auto& all = pieces().by_address;
  for (auto found = all.begin(); found != all.end();) {
    Piece& piece = found->second;
    std::erase_if(piece.waits_for, [](const auto& wait) { return wait.first->done(wait.second); });
    if (!piece.freed || !piece.waits_for.empty()) {
      ++found;
      continue;
    }
    pieces().stats.allocated_bytes.decrease(piece.bytes);
    char* const memory = const_cast<char*>(found->first);
    std::memset(memory, poison, piece.bytes);
    std::free(memory);
    found = all.erase(found);
  }
}

void free_pinned(void* data) {
  if (data == nullptr) return;
  const std::lock_guard lock(pieces().mutex);
  const auto found = find(data);
  TORCH_CHECK(found != pieces().by_address.end(), "[accelerator] pinned memory freed twice, or never had");
  found->second.freed = true;
  pieces().stats.active_bytes.decrease(found->second.bytes);
  collect();
}

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(std::size_t n) override {
    constexpr std::size_t alignment = 64;
    if (n == 0) return {nullptr, nullptr, &free_pinned, c10::Device(c10::DeviceType::CPU)};
    const std::size_t bytes = (n + alignment - 1) / alignment * alignment;
    const std::lock_guard lock(pieces().mutex);
    collect();
    void* const data = std::aligned_alloc(alignment, bytes);
    if (data == nullptr) throw std::bad_alloc();
    std::memset(data, poison, bytes);
    pieces().by_address[static_cast<const char*>(data)].bytes = bytes;
    pieces().stats.allocated_bytes.increase(bytes);
    pieces().stats.active_bytes.increase(bytes);
    return {data, data, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  bool record_event(void* data, void*, c10::Stream stream) override {
    if (!is_pinned(data)) return false;
    pinned_used_by(data, stream_of(stream));
    return true;
  }
  void empty_cache() override {
    const std::lock_guard lock(pieces().mutex);
    collect();
  }
  at::HostStats get_stats() override {
    const std::lock_guard lock(pieces().mutex);
    return pieces().stats;
  }
  void reset_accumulated_stats() override {
    const std::lock_guard lock(pieces().mutex);
    pieces().stats.active_bytes.reset_accumulated();
    pieces().stats.allocated_bytes.reset_accumulated();
  }
  void reset_peak_stats() override {
    const std::lock_guard lock(pieces().mutex);
    pieces().stats.active_bytes.reset_peak();
    pieces().stats.allocated_bytes.reset_peak();
  }
};

PinnedAllocator& allocator() {
  static auto& made = *new PinnedAllocator;
  return made;
}

}  // namespace

void register_pinned_memory() {
  at::setHostAllocator(type, &allocator());
}
c10::Allocator* pinned_allocator() {
  return &allocator();
}

bool is_pinned(const void* address) {
  const std::lock_guard lock(pieces().mutex);
  return find(address) != pieces().by_address.end();
}

void pinned_used_by(const void* address, DeviceStream& stream) {
  const std::lock_guard lock(pieces().mutex);
  const auto found = find(address);
  if (found != pieces().by_address.end()) found->second.waits_for.emplace_back(&stream, stream.last());
}

}  // namespace reprise::testing::accelerator
