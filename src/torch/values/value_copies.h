// The copies of one value: packed, in the tier below its device, or none. Under the arbiter's lock.
#pragma once

#include <memory>

#include "torch/offload/packed_copy.h"
#include "torch/offload/transfer_tier.h"
#include "torch/values/counters.h"

namespace reprise::internal {

class ValueCopies {
 public:
  // nullptr: there is none.
  [[nodiscard]] const std::shared_ptr<const PackedCopy>& packed() const { return packed_; }
  [[nodiscard]] const std::shared_ptr<const TierCopy>& below() const { return below_; }
  // The one to have the value from.
  [[nodiscard]] std::shared_ptr<const ValueCopy> usable() const;
  [[nodiscard]] bool usable_below() const { return below_ && below_->usable(); }

  // False: the contents do not pack, or there is no room. They are so many bytes.
  bool pack(const PackedForm&, const c10::Storage& contents, Bytes, PackedCopy::Account, Counters&);
  // Begins to put them into the tier; with `verify`, what comes back is compared with them.
  void put(TransferTier&, c10::Storage contents, const std::optional<c10::Stream>& made_on, bool verify);
  // Nobody counts any more on what was fetched.
  void give_up_fetched() const;

  void drop_packed() { packed_.reset(); }
  void drop_below() { below_.reset(); }
  void drop();

 private:
  std::shared_ptr<const PackedCopy> packed_;
  std::shared_ptr<const TierCopy> below_;
};

}  // namespace reprise::internal
