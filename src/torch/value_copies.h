// The copies of one value: packed, on disk, or none. Under the arbiter's lock.
#pragma once

#include <memory>

#include "torch/counters.h"
#include "torch/disk_copy.h"
#include "torch/packed_copy.h"

namespace reprise::internal {

class ValueCopies {
 public:
  // nullptr: there is none.
  [[nodiscard]] const std::shared_ptr<const PackedCopy>& packed() const { return packed_; }
  [[nodiscard]] const std::shared_ptr<const DiskCopy>& on_disk() const { return on_disk_; }
  // The one to have the value from.
  [[nodiscard]] std::shared_ptr<const ValueCopy> usable() const;
  [[nodiscard]] bool usable_on_disk() const { return on_disk_ && on_disk_->usable(); }

  // False: the contents do not pack, or there is no room. They are so many bytes.
  bool pack(const PackedForm&, const c10::Storage& contents, Bytes, PackedCopy::Account, Counters&);
  // Begins to write them to disk.
  void put(std::shared_ptr<ValueDisk>, c10::Storage contents);
  // Nobody counts any more on what was fetched.
  void give_up_fetched() const;

  void drop_packed() { packed_.reset(); }
  void drop_from_disk() { on_disk_.reset(); }
  void drop();

 private:
  std::shared_ptr<const PackedCopy> packed_;
  std::shared_ptr<const DiskCopy> on_disk_;
};

}  // namespace reprise::internal
