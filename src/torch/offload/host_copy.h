// A copy of a value in memory of the host (host_memory.h).
#pragma once

#include <memory>

#include "torch/offload/host_memory.h"
#include "torch/offload/value_tier.h"

namespace reprise::internal {

class HostCopy final : public TierCopy {
 public:
  HostCopy(std::shared_ptr<HostMemory> host, std::shared_ptr<HostTransfer> transfer)
      : host_(std::move(host)), transfer_(std::move(transfer)) {}
  ~HostCopy() override;

  [[nodiscard]] bool usable() const override;
  [[nodiscard]] c10::Storage contents() const override { return host_->contents(transfer_); }
  [[nodiscard]] bool fetched() const override;
  void finish_put() const override { host_->finish_put(*transfer_); }
  void fetch() const override { host_->fetch(transfer_); }
  void give_up_fetched() const override;

 private:
  std::shared_ptr<HostMemory> host_;
  std::shared_ptr<HostTransfer> transfer_;
};

}  // namespace reprise::internal
