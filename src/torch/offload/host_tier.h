// Memory of the host below that of an accelerator: pinned, so that the device copies values there and back by itself,
// on two streams beside those that compute.
//
// A put waits, on its stream, for the stream that made the value; who drops the value makes that stream wait for the
// copy, and frees the memory in its order. A get waits for the stream that its memory was allocated on, and who needs
// the value makes the current stream wait for it. So nothing here waits on the host, but for room: what is being got
// still has its bytes here, and a put that needs them waits until the device has come so far; and to verify a copy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "torch/memory/counted_device.h"
#include "torch/offload/transfer_tier.h"

namespace reprise::internal {

class HostTransferTier final : public TransferTier {
 public:
  // Opens a tier of so many bytes below this accelerator; with `in_cpu` they count in the budget of the CPU, too.
  // Measures how fast the device copies. Throws BadOption if it has no pinned memory.
  [[nodiscard]] static std::shared_ptr<HostTransferTier> open(Bytes bytes, const CountedDevice&, bool in_cpu);
  ~HostTransferTier() override;

  [[nodiscard]] const CountedDevice& above() const { return above_; }
  void report(Summary&, const TierTotals& before) const override;
  [[nodiscard]] std::exception_ptr lost_error(const std::string& why) const override;

 private:
  struct Timed {
    std::shared_ptr<const CopySpan> span;
    std::size_t bytes;
    Work work;
  };

  HostTransferTier(Bytes bytes, const CountedDevice&, bool in_cpu);

  [[nodiscard]] std::unique_ptr<TierContents> store(TierTransfer&) override;
  void load(TierTransfer&) override;
  void free(TransferMemory) override;
  void use_here(const TransferMemory&, bool reloaded) override;
  void expect_no_failure() override;
  void learn_times(std::size_t) override;

  // Copies on this stream, after all that was given to the memory's stream so far, and after that copy.
  [[nodiscard]] std::shared_ptr<const CopySpan> copy(const c10::Storage& to, const c10::Storage& from, c10::Stream on,
                                                     c10::Stream after, const CopySpan* and_after);
  [[nodiscard]] c10::Stream here() const;
  [[nodiscard]] bool may_take(Bytes) const;

  const CountedDevice& above_;
  const bool in_cpu_;
  const c10::Stream puts_on_, gets_on_;
  std::vector<Timed> timed_;  // under the lock: that the device has not told yet
};

}  // namespace reprise::internal
