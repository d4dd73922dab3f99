#include "accelerator/result_shapes.h"

#include <ATen/ATen.h>

#include <mutex>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace reprise::testing::accelerator {
namespace {

struct Known {
  std::mutex mutex;
  std::unordered_map<std::string, ResultShapes> shapes;
};
Known& known() {
  static auto& all = *new Known;
  return all;
}

void describe(std::ostream& out, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    out << "none;";
    return;
  }
  out << tensor.scalar_type() << tensor.sizes() << tensor.strides() << tensor.device() << ';';
}

void describe(std::ostream& out, const c10::IValue& value) {
  if (value.isTensor()) {
    describe(out, value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) describe(out, tensor);
    out << "];";
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector()) describe(out, tensor.value_or(at::Tensor()));
    out << "];";
  } else if (!value.isGenerator()) {
    out << value << ';';
  }
}

}  // namespace

Shape Shape::of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  TORCH_CHECK(tensor.layout() == at::kStrided, "[accelerator] no tensors of the layout ", tensor.layout());
  return {true, tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

at::Tensor Shape::empty(c10::Device device) const {
  return defined ? at::empty_strided(sizes, strides, at::TensorOptions(device).dtype(scalars)) : at::Tensor();
}

std::string shape_key(const std::string& name, const std::vector<c10::IValue>& arguments) {
  std::ostringstream key;
  key << name << '(';
  for (const c10::IValue& argument : arguments) describe(key, argument);
  return key.str();
}

std::optional<ResultShapes> known_shapes(const std::string& key) {
  const std::lock_guard lock(known().mutex);
  const auto found = known().shapes.find(key);
  return found == known().shapes.end() ? std::nullopt : std::optional(found->second);
}

void remember_shapes(const std::string& key, ResultShapes shapes) {
  const std::lock_guard lock(known().mutex);
  known().shapes[key] = std::move(shapes);
}

}  // namespace reprise::testing::accelerator
