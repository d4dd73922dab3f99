#include "torch/offload/packed_copy.h"

#include <span>

#include "torch/libtorch/libtorch.h"

namespace reprise::internal {

std::optional<PackedForm> form_of_contents(const c10::StorageImpl& storage, at::ScalarType dtype) {
  const int element = static_cast<int>(c10::elementSize(dtype));
  if (element > 8 || c10::isComplexType(dtype)) return std::nullopt;
  return packable({static_cast<const std::byte*>(storage.data()), storage.nbytes()}, element,
                  c10::isIntegralType(dtype, false));
}

// Tracked before it is charged and until it is discharged: its bytes are never among the other ones, not for a moment.
std::shared_ptr<const PackedCopy> PackedCopy::of(const PackedForm& form, const c10::Storage& storage, Account account) {
  if (storage.nbytes() != form.plain_bytes()) return nullptr;
  const std::shared_ptr<PackedCopy> copy(new PackedCopy);
  meter::Header charged = copy->account_;
  charged.bytes = meter::counted(form.bytes());
  if (account == Account::plan) meter::track(charged);
  if (!meter::charge(charged.bytes)) {
    meter::untrack(charged);
    return nullptr;
  }
  copy->account_ = charged;
  copy->form_ = form;
  copy->data_ = std::make_unique_for_overwrite<std::byte[]>(form.bytes());
  const std::span plain{static_cast<const std::byte*>(storage.data()), storage.nbytes()};
  if (!reprise::pack(form, plain, {copy->data_.get(), form.bytes()})) return nullptr;
  return copy;
}

PackedCopy::~PackedCopy() {
  meter::discharge(account_.bytes);
  meter::untrack(account_);
}

c10::Storage PackedCopy::contents() const {
  c10::Storage storage = libtorch::new_storage(form_.plain_bytes());
  unpack(form_, {data_.get(), form_.bytes()}, {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()});
  return storage;
}

}  // namespace reprise::internal
