#include "torch/view.h"

namespace reprise::internal {

View::View(const at::Tensor& tensor) : offset(tensor.storage_offset()), dtype(tensor.scalar_type()) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  dims.append(sizes.begin(), sizes.end());
  dims.append(strides.begin(), strides.end());
}

at::Tensor View::of(c10::Storage storage) const {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes(), strides(), offset);
  return tensor;
}

}  // namespace reprise::internal
