#include "torch/offload/value_tiers.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "torch/offload/value_tier.h"

namespace reprise::internal {

ValueTiers& ValueTiers::of_process() {
  static auto& one = *new ValueTiers;
  return one;
}

void ValueTiers::add(const std::shared_ptr<ValueTier>& tier) {
  const std::lock_guard lock(mutex_);
  std::erase_if(tiers_, [](const auto& one) { return one.expired(); });
  tiers_.push_back(tier);
  // Sessions that live until the end of the process are not destroyed, and may be in use by threads that go on.
  if (!std::exchange(announced_, true)) std::atexit([] { ValueTiers::of_process().end(); });
}

void ValueTiers::end() noexcept {
  std::vector<std::shared_ptr<ValueTier>> tiers;
  {
    const std::lock_guard lock(mutex_);
    tiers = all();
  }
  for (const auto& tier : tiers) tier->end();
}

std::vector<std::shared_ptr<ValueTier>> ValueTiers::all() {
  std::vector<std::shared_ptr<ValueTier>> present;
  for (const auto& one : tiers_) {
    if (auto tier = one.lock()) present.push_back(std::move(tier));
  }
  return present;
}

bool ValueTiers::settle_next() {
  const auto tiers = [this] {
    const std::lock_guard lock(mutex_);
    return all();
  }();
  return std::any_of(tiers.begin(), tiers.end(), [](const auto& tier) { return tier->settle_next(); });
}

bool ValueTiers::give_up_fetched() {
  const auto tiers = [this] {
    const std::lock_guard lock(mutex_);
    return all();
  }();
  bool any = false;
  for (const auto& tier : tiers) any |= tier->give_up_fetched();
  return any;
}

// Each of them is kept alive: what ends it takes locks that are held.
void ValueTiers::lock_for_fork() {
  mutex_.lock();
  at_fork_ = all();
  for (const auto& tier : at_fork_) tier->lock_for_fork();
}

void ValueTiers::unlock_in_parent() {
  for (const auto& tier : at_fork_) tier->unlock_in_parent();
  const auto tiers = std::move(at_fork_);
  at_fork_.clear();
  mutex_.unlock();
}

void ValueTiers::unlock_in_child() {
  for (const auto& tier : at_fork_) tier->unlock_in_child();
  const auto tiers = std::move(at_fork_);
  at_fork_.clear();
  mutex_.unlock();
}

}  // namespace reprise::internal
