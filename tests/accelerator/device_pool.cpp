#include "accelerator/device_pool.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace reprise::testing::accelerator {

DevicePool::DevicePool(c10::DeviceIndex device)
    : addresses_(addresses_of(device)), fresh_(addresses_.first), capacity_(std::size_t{unlimited}) {}

void* DevicePool::allocate(std::size_t bytes, DeviceStream& stream) {
  const std::lock_guard lock(mutex_);
  collect_waiting();
  char* at = take(bytes, stream);
  if (at == nullptr) {  // what nobody else could have by now
    ++stats_.num_alloc_retries;
    give_back_cached();
    at = take(bytes, stream);
  }
  if (at == nullptr) {
    ++stats_.num_ooms;
    return nullptr;
  }
  stats_.allocation[every_kind].increase(1);
  stats_.allocated_bytes[every_kind].increase(bytes);
  stats_.active_bytes[every_kind].increase(bytes);
  return at;
}

void DevicePool::free(void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<char*>(data));
  TORCH_CHECK(found != blocks_.end() && found->second.state == State::live, "[accelerator] freed twice, or never had");
  Block& block = found->second;
  stats_.allocation[every_kind].decrease(1);
  stats_.allocated_bytes[every_kind].decrease(block.bytes);
  if (block.users.empty()) {
    cache(block);
    return;
  }
  block.state = State::waiting;
  waiting_.push_back(block.at);
  for (DeviceStream* user : block.users) block.waits_for.emplace_back(user, user->last());
  block.users.clear();
}

void DevicePool::used_by(void* data, DeviceStream& stream) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<char*>(data));
  if (found == blocks_.end() || found->second.stream == &stream) return;
  auto& users = found->second.users;
  if (std::find(users.begin(), users.end(), &stream) == users.end()) users.push_back(&stream);
}

void DevicePool::empty_cache() {
  const std::lock_guard lock(mutex_);
  give_back_cached();
}

// The smallest cached block of this stream that is large enough, or a new segment.
char* DevicePool::take(std::size_t bytes, DeviceStream& stream) {
  char* at = nullptr;
  const auto found = cached_.lower_bound({&stream, bytes, nullptr});
  if (found != cached_.end() && std::get<0>(*found) == &stream && (segment_ > 0 || std::get<1>(*found) == bytes)) {
    at = std::get<2>(*found);
    cached_.erase(found);
  } else {
    const std::size_t whole = std::max(bytes, segment_);
    at = new_segment(whole);
    if (at == nullptr) return nullptr;
    Block& block = blocks_[at];
    block.at = block.segment = at;
    block.bytes = whole;
    block.stream = &stream;
    poison_in_order(block);
  }
  Block& block = blocks_.at(at);
  block.state = State::live;
  if (block.bytes > bytes) split(block, bytes);
  return at;
}

char* DevicePool::new_segment(std::size_t bytes) {
  const auto reserved = static_cast<std::size_t>(stats_.reserved_bytes[every_kind].current);
  if (bytes > capacity_ || reserved > capacity_ - bytes) return nullptr;
  char* at = fresh_;
  if (const auto found = abandoned_.find(bytes); found != abandoned_.end()) {
    at = found->second;
    abandoned_.erase(found);
  } else {
    TORCH_CHECK(bytes <= static_cast<std::size_t>(addresses_.end - fresh_), "[accelerator] no addresses are left");
    fresh_ += bytes;
  }
  stats_.segment[every_kind].increase(1);
  stats_.reserved_bytes[every_kind].increase(bytes);
  return at;
}

void DevicePool::split(Block& block, std::size_t bytes) {
  Block rest = block;
  rest.at += bytes;
  rest.bytes -= bytes;
  rest.state = State::cached;
  block.bytes = bytes;
  cached_.emplace(rest.stream, rest.bytes, rest.at);
  blocks_.emplace(rest.at, std::move(rest));
}

void DevicePool::cache(Block& freed) {
  stats_.active_bytes[every_kind].decrease(freed.bytes);
  freed.state = State::cached;
  poison_in_order(freed);
  cached_.emplace(freed.stream, freed.bytes, freed.at);
  const auto found = blocks_.find(freed.at);
  if (const auto next = std::next(found); next != blocks_.end()) join(freed, next->second);
  if (found != blocks_.begin()) join(std::prev(found)->second, freed);
}

// Two cached blocks side by side in one segment become one, the first.
void DevicePool::join(Block& first, Block& second) {
  if (first.state != State::cached || second.state != State::cached || first.segment != second.segment) return;
  cached_.erase({first.stream, first.bytes, first.at});
  cached_.erase({second.stream, second.bytes, second.at});
  first.bytes += second.bytes;
  first.poisoned = std::max(first.poisoned, second.poisoned);
  cached_.emplace(first.stream, first.bytes, first.at);
  blocks_.erase(second.at);
}

void DevicePool::poison_in_order(Block& block) {
  void* const at = kernel_address(block.at);
  block.poisoned = block.stream->enqueue([at, bytes = block.bytes](Time&) { std::memset(at, poison, bytes); });
}

void DevicePool::collect_waiting() {
  std::erase_if(waiting_, [&](char* at) {
    Block& block = blocks_.at(at);
    std::erase_if(block.waits_for, [](const auto& wait) { return wait.first->done(wait.second); });
    if (!block.waits_for.empty()) return false;
    cache(block);
    return true;
  });
}

void DevicePool::give_back_cached() {
  for (char* at : waiting_)
    for (const auto& [stream, ticket] : blocks_.at(at).waits_for) stream->settle();
  collect_waiting();
  for (auto found = blocks_.begin(); found != blocks_.end();) {
    const Block& block = found->second;
    const auto next = std::next(found);
    const bool whole = block.at == block.segment && (next == blocks_.end() || next->second.segment != block.segment);
    if (block.state == State::cached && whole) {
      if (!block.stream->done(block.poisoned)) block.stream->settle();
      drop_pages(block.at, block.bytes);
      abandoned_.emplace(block.bytes, block.at);
      cached_.erase({block.stream, block.bytes, block.at});
      stats_.segment[every_kind].decrease(1);
      stats_.reserved_bytes[every_kind].decrease(block.bytes);
      blocks_.erase(found);
    }
    found = next;
  }
}

DevicePool::Stats DevicePool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void DevicePool::reset_peaks() {
  const std::lock_guard lock(mutex_);
  for (auto* stat :
       {&stats_.allocation, &stats_.segment, &stats_.allocated_bytes, &stats_.active_bytes, &stats_.reserved_bytes})
    (*stat)[every_kind].reset_peak();
}

void DevicePool::reset_accumulated() {
  const std::lock_guard lock(mutex_);
  for (auto* stat :
       {&stats_.allocation, &stats_.segment, &stats_.allocated_bytes, &stats_.active_bytes, &stats_.reserved_bytes})
    (*stat)[every_kind].reset_accumulated();
  stats_.num_alloc_retries = stats_.num_ooms = 0;
}

std::size_t DevicePool::capacity() const {
  const std::lock_guard lock(mutex_);
  return capacity_;
}
void DevicePool::capacity(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
}
void DevicePool::segments_of(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  segment_ = bytes;
}

DevicePool& pool_of(c10::DeviceIndex device) {
  static auto& all_pools = *[] {
    auto* const made = new std::array<DevicePool*, most_devices>;  // never destroyed: tensors outlive main
    for (int i = 0; i < most_devices; ++i)
      (*made)[static_cast<std::size_t>(i)] = new DevicePool(static_cast<c10::DeviceIndex>(i));
    return made;
  }();
  return *all_pools.at(static_cast<std::size_t>(device));
}

}  // namespace reprise::testing::accelerator
