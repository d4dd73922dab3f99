#include "torch/values/value_copies.h"

#include <utility>

#include "torch/libtorch/clock.h"

namespace reprise::internal {

std::shared_ptr<const ValueCopy> ValueCopies::usable() const {
  if (packed_) return packed_;
  return usable_below() ? below_ : nullptr;
}

bool ValueCopies::pack(const PackedForm& form, const c10::Storage& contents, Bytes bytes, PackedCopy::Account account,
                       Counters& counters) {
  const double start = thread_microseconds();
  packed_ = PackedCopy::of(form, contents, account);
  counters.packing(thread_microseconds() - start);
  if (packed_) counters.packed(bytes, packed_->bytes());
  return packed_ != nullptr;
}

void ValueCopies::put(TransferTier& tier, c10::Storage contents, const std::optional<c10::Stream>& made_on,
                      bool verify) {
  below_ = tier.put(std::move(contents), made_on, verify);
}

void ValueCopies::give_up_fetched() const {
  if (below_) below_->give_up_fetched();
}

void ValueCopies::drop() {
  drop_packed();
  drop_below();
}

}  // namespace reprise::internal
