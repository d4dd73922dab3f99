#include "torch/offload/value_tiers.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/offload/transfer_tier.h"

namespace reprise::internal {

ValueTiers& ValueTiers::of_process() {
  static auto& one = *new ValueTiers;
  return one;
}

void ValueTiers::add(const std::shared_ptr<TransferTier>& tier) {
  const std::lock_guard lock(mutex_);
  std::erase_if(tiers_, [](const auto& one) { return one.expired(); });
  tiers_.push_back(tier);
  // Sessions that live until the end of the process are not destroyed, and may be in use by threads that go on.
  if (!std::exchange(announced_, true)) std::atexit([] { ValueTiers::of_process().end(); });
}

void ValueTiers::end() noexcept {
  for (const auto& tier : present()) tier->end();
}

std::vector<std::shared_ptr<TransferTier>> ValueTiers::present() {
  const std::lock_guard lock(mutex_);
  return present_with_lock();
}

std::vector<std::shared_ptr<TransferTier>> ValueTiers::present_with_lock() const {
  std::vector<std::shared_ptr<TransferTier>> tiers;
  for (const auto& one : tiers_) {
    if (auto tier = one.lock()) tiers.push_back(std::move(tier));
  }
  return tiers;
}

bool ValueTiers::finish_next_put() {
  const auto tiers = present();
  return std::any_of(tiers.begin(), tiers.end(), [](const auto& tier) { return tier->finish_next_put(); });
}

bool ValueTiers::give_up_fetched() {
  bool any = false;
  auto tiers = present();
  for (const auto& tier : tiers) any |= tier->give_up_fetched();
  Arbiter::discard_all(std::move(tiers));  // a session may have ended meanwhile
  return any;
}

// Each of them is kept alive: what ends it takes locks that are held.
void ValueTiers::lock_for_fork() {
  mutex_.lock();
  at_fork_ = present_with_lock();
  for (const auto& tier : at_fork_) tier->lock_for_fork();
}

void ValueTiers::unlock_after_fork(void (TransferTier::*unlock)()) {
  for (const auto& tier : at_fork_) ((*tier).*unlock)();
  const auto tiers = std::exchange(at_fork_, {});
  mutex_.unlock();
}

void ValueTiers::unlock_in_parent() {
  unlock_after_fork(&TransferTier::unlock_in_parent);
}

void ValueTiers::unlock_in_child() {
  unlock_after_fork(&TransferTier::unlock_in_child);
}

}  // namespace reprise::internal
