#include "torch/libtorch/tensor_view.h"

#include "torch/libtorch/libtorch.h"

namespace reprise::internal {

View::View(const at::Tensor& tensor)
    : offset(tensor.storage_offset()), dtype(tensor.scalar_type()), device(tensor.device()) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  dims.append(sizes.begin(), sizes.end());
  dims.append(strides.begin(), strides.end());
}

at::Tensor View::of(c10::Storage storage) const {
  const c10::DispatchKeySet keys = libtorch::keys_of(storage, dtype);
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes(), strides(), offset);
  return tensor;
}

}  // namespace reprise::internal
