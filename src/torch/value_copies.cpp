#include "torch/value_copies.h"

#include <utility>

#include "torch/clock.h"

namespace reprise::internal {

std::shared_ptr<const ValueCopy> ValueCopies::usable() const {
  if (packed_) return packed_;
  return usable_on_disk() ? on_disk_ : nullptr;
}

bool ValueCopies::pack(const PackedForm& form, const c10::Storage& contents, Bytes bytes, PackedCopy::Account account,
                       Counters& counters) {
  const double start = thread_microseconds();
  packed_ = PackedCopy::of(form, contents, account);
  counters.packing(thread_microseconds() - start);
  if (packed_) counters.packed(bytes, packed_->bytes());
  return packed_ != nullptr;
}

void ValueCopies::put(std::shared_ptr<ValueDisk> disk, c10::Storage contents) {
  on_disk_ = DiskCopy::of(std::move(disk), std::move(contents));
}

void ValueCopies::give_up_fetched() const {
  if (on_disk_) on_disk_->give_up_fetched();
}

void ValueCopies::drop() {
  drop_packed();
  drop_from_disk();
}

}  // namespace reprise::internal
