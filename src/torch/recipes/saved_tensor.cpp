#include "torch/recipes/saved_tensor.h"

#include <torch/csrc/autograd/variable.h>

#include "torch/libtorch/libtorch_versions.h"

namespace reprise::internal {

Original::Original(const at::Tensor& saved) : tensor(saved.getIntrusivePtr()) {
  const auto* const meta = torch::autograd::impl::get_autograd_meta(saved);
  if (!meta || !meta->grad_fn_) return;
  maker = meta->grad_fn_.get();
  output = meta->output_nr_;
}

bool Original::is_of_current_node() const {
  const auto node = torch::autograd::get_current_node();
  return maker && (!node || node.get() == maker);
}

std::string Original::made_by() const {
  if (const auto node = torch::autograd::get_current_node(); node && node.get() == maker) {
    return ", which is output " + std::to_string(output) + " of " + libtorch::name_of(*node) + ",";
  }
  const auto there = tensor.lock();
  const auto node = there ? at::Tensor(there).grad_fn() : nullptr;
  return node ? ", which is output 0 of " + libtorch::name_of(*node) + "," : "";
}

void Original::check_attached() const {
  if (!maker || is_of_current_node()) return;
  const auto node = torch::autograd::get_current_node();
  if (node && !libtorch::is_of_libtorch(*node)) return;  // to a function of the program's it is no error
  const auto there = tensor.lock();
  TORCH_CHECK(!there || there->requires_grad(),
              "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
              "This is not supported, please use out-of-place `.detach()` instead");
}

at::Tensor SavedTensor::same_in(const c10::Storage& storage) const {
  if (original.maker) return {};
  const auto there = original.tensor.lock();
  if (!there || there->requires_grad() || !there->has_storage()) return {};
  at::Tensor tensor(there);
  const bool same = libtorch::storage_of(tensor) == storage.unsafeGetStorageImpl() && view.matches(tensor);
  return same ? tensor : at::Tensor();
}

void SavedTensor::check_unmoved(bool under_arbiter) const {
  if (unmoved()) return;
  libtorch::throw_modified(version, expected_version, view.device, view.dtype, view.sizes(),
                           under_arbiter ? "" : original.made_by());
}

}  // namespace reprise::internal
