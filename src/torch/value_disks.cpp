#include "torch/value_disks.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "torch/process.h"
#include "torch/value_disk.h"

namespace reprise::internal {

void ValueDisks::add(const std::shared_ptr<ValueDisk>& disk) {
  const std::lock_guard lock(mutex_);
  std::erase_if(disks_, [](const auto& one) { return one.expired(); });
  disks_.push_back(disk);
  // Sessions that live until the end of the process are not destroyed, and may be in use by threads that go on.
  if (!std::exchange(announced_, true)) std::atexit([] { process().disks().end(); });
}

void ValueDisks::end() noexcept {
  std::vector<std::shared_ptr<ValueDisk>> disks;
  {
    const std::lock_guard lock(mutex_);
    disks = all();
  }
  for (const auto& disk : disks) disk->end();
}

std::vector<std::shared_ptr<ValueDisk>> ValueDisks::all() {
  std::vector<std::shared_ptr<ValueDisk>> present;
  for (const auto& one : disks_) {
    if (auto disk = one.lock()) present.push_back(std::move(disk));
  }
  return present;
}

bool ValueDisks::settle_next() {
  const auto disks = [this] {
    const std::lock_guard lock(mutex_);
    return all();
  }();
  return std::any_of(disks.begin(), disks.end(), [](const auto& disk) { return disk->settle_next(); });
}

bool ValueDisks::give_up_fetched() {
  const auto disks = [this] {
    const std::lock_guard lock(mutex_);
    return all();
  }();
  bool any = false;
  for (const auto& disk : disks) any |= disk->give_up_fetched();
  return any;
}

// Each of them is kept alive: what ends it takes locks that are held.
void ValueDisks::lock_for_fork() {
  mutex_.lock();
  at_fork_ = all();
  for (const auto& disk : at_fork_) disk->lock_for_fork();
}

void ValueDisks::unlock_in_parent() {
  for (const auto& disk : at_fork_) disk->unlock_in_parent();
  const auto disks = std::move(at_fork_);
  at_fork_.clear();
  mutex_.unlock();
}

void ValueDisks::unlock_in_child() {
  for (const auto& disk : at_fork_) disk->unlock_in_child();
  const auto disks = std::move(at_fork_);
  at_fork_.clear();
  mutex_.unlock();
}

}  // namespace reprise::internal
