#include "torch/offload/host_copy.h"

#include <utility>

#include "torch/memory/arbiter.h"

namespace reprise::internal {

std::shared_ptr<const TierCopy> HostMemory::put(c10::Storage storage, const std::optional<c10::Stream>& made_on) {
  auto transfer = std::make_shared<HostTransfer>();
  transfer->bytes = storage.nbytes();
  transfer->made_on = made_on;
  transfer->from = std::move(storage);
  {
    const std::lock_guard lock(mutex_);
    unfinished_.push_back(transfer);
  }
  Arbiter::after([host = shared_from_this()] { (void)host->settle(); });
  return std::make_shared<HostCopy>(shared_from_this(), std::move(transfer));
}

HostCopy::~HostCopy() {
  {
    const std::lock_guard lock(host_->mutex_);
    host_->leave(std::move(transfer_));
  }
  host_->free_later();
  if (host_.use_count() == 1) Arbiter::discard_all(std::move(host_));
}

bool HostCopy::usable() const {
  const std::lock_guard lock(host_->mutex_);
  return transfer_->state != HostTransfer::State::lost;
}

bool HostCopy::fetched() const {
  const std::lock_guard lock(host_->mutex_);
  return static_cast<bool>(transfer_->got);
}

void HostCopy::give_up_fetched() const {
  {
    const std::lock_guard lock(host_->mutex_);
    host_->give_up_fetched(*transfer_);
  }
  host_->free_later();
}

}  // namespace reprise::internal
