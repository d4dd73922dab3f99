// How a tensor lies in its storage, and on which device that is.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace reprise::internal {

struct View {
  c10::SmallVector<std::int64_t, 6> dims;  // sizes, then strides
  std::int64_t offset = 0;
  at::ScalarType dtype = at::kFloat;
  c10::Device device{c10::DeviceType::CPU};

  View() = default;
  explicit View(const at::Tensor&);
  [[nodiscard]] c10::IntArrayRef sizes() const { return {dims.data(), dims.size() / 2}; }
  [[nodiscard]] c10::IntArrayRef strides() const { return {dims.data() + dims.size() / 2, dims.size() / 2}; }
  // Returns whether the tensor lies in its storage in this way.
  [[nodiscard]] bool matches(const at::Tensor& tensor) const {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    const c10::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
    if (2 * sizes.size() != dims.size() || impl.storage_offset() != offset) return false;
    if (c10::typeMetaToScalarType(impl.dtype()) != dtype || impl.device() != device) return false;
    const std::int64_t* const mine = dims.data();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (mine[i] != sizes[i] || mine[sizes.size() + i] != strides[i]) return false;
    }
    return true;
  }
  // Returns a tensor over the storage, without a dispatcher call.
  [[nodiscard]] at::Tensor of(c10::Storage) const;
  bool operator==(const View& other) const {
    return offset == other.offset && dtype == other.dtype && device == other.device && dims == other.dims;
  }
};

}  // namespace reprise::internal
