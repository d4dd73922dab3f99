#include "torch/record/arguments.h"

#include "torch/evict/saved_values.h"

namespace reprise::internal {
namespace {

bool covers_storage(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * tensor.itemsize() == libtorch::storage_of(tensor)->nbytes() &&
         tensor.is_non_overlapping_and_dense();
}

class ArgumentWriter {
 public:
  ArgumentWriter(Recording& recording, Recipe& recipe)
      : recording_(recording), recipes_(recording.cursor().own()), recipe_(recipe) {}

  void write(c10::ArrayRef<const c10::IValue> inputs) {
    training_ = recipe_.info->is_training(inputs);
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) write(inputs[i], i);
    find_overwritten_inputs();
  }

 private:
  void write(const c10::IValue& input, int index) {
    Argument argument;
    if (is_constant(input)) {
      argument.first = static_cast<std::uint32_t>(recipes_.constants.size());
      recipes_.constants.push_back(input);
    } else if (input.isTensor() && !libtorch::is_plain(input.toTensor())) {
      argument.kind = Argument::Kind::unknown;
      recipe_.why_not_replayable = "an argument is not a plain tensor on a device that is counted";
    } else {
      argument.kind = input.isTensor()       ? Argument::Kind::tensor
                      : input.isTensorList() ? Argument::Kind::tensors
                                             : Argument::Kind::optional_tensors;
      // References of one argument lie next to each other; looking one up may add values, never references.
      argument.first = static_cast<std::uint32_t>(recipes_.references.size());
      if (input.isTensor()) {
        recipes_.references.push_back(reference(input.toTensor(), index, 0));
      } else {
        int element = 0;
        for (const c10::IValue& one : input.toListRef()) {
          recipes_.references.push_back(one.isTensor() ? reference(one.toTensor(), index, element) : Reference());
          ++element;
        }
      }
      argument.count = static_cast<std::uint32_t>(recipes_.references.size()) - argument.first;
    }
    recipes_.arguments.push_back(argument);
  }

  Reference reference(const at::Tensor& tensor, int index, int element) {
    Reference result;
    if (!tensor.defined()) return result;
    result.defined = true;
    if (!libtorch::is_plain(tensor)) {
      recipe_.why_not_replayable = "an argument is not a plain tensor on a device that is counted";
      result.plain = false;
      return result;
    }
    result.view = View(tensor);
    const Access access = access_of(*recipe_.info, training_, index, tensor);
    c10::StorageImpl* const storage = libtorch::storage_of(tensor);
    const bool needs_contents = access == Access::read || access == Access::write;
    const Id value = needs_contents ? look_up(recording_, tensor) : values().bindings().find(storage);
    if (needs_contents) {
      result.value = value;
      values().provenance().use(value);
    }
    if (access != Access::read) {
      if (access == Access::write && !values().recomputable(value)) {
        recipe_.why_not_replayable = "it changes a tensor from outside in place";
      }
      if (access == Access::overwrite) overwritten_.push_back(storage);
      recipes_.writes.push_back({static_cast<std::int16_t>(index), static_cast<std::int16_t>(element), access, value,
                                 static_cast<Bytes>(storage->nbytes())});
    }
    return result;
  }

  // What is overwritten may be read as another argument, and be met there for the first time: x.copy_(x), or
  // mul_out(x, x, y).
  void find_overwritten_inputs() {
    for (c10::StorageImpl* const storage : overwritten_) {
      const Id before = values().bindings().find(storage);
      if (before == no_value || values().recomputable(before)) continue;
      for (std::size_t i = recipe_.start.references; i < recipes_.references.size(); ++i) {
        if (recipes_.references[i].value == before)
          recipe_.why_not_replayable = "it changes a tensor from outside in place";
      }
    }
  }

  [[nodiscard]] Values& values() { return recording_.values(); }

  Recording& recording_;
  Recipes& recipes_;
  Recipe& recipe_;
  bool training_ = false;
  c10::SmallVector<c10::StorageImpl*, 2> overwritten_;
};

}  // namespace

bool is_constant(const c10::IValue& input) {
  if (input.isTensor()) return is_constant(input.toTensor());
  if (!input.isList() || input.isTensorList() || input.isOptionalTensorList()) {
    return !input.isTensorList() && !input.isOptionalTensorList();
  }
  const auto elements = input.toListRef();
  return elements.empty() || !elements[0].isTensor();
}

Access access_of(const OperatorInfo& info, bool training, int argument, const at::Tensor& tensor) {
  if (training && argument >= info.first_statistic && argument <= info.last_statistic) return Access::statistic;
  if (!training && argument == info.noise_argument) return Access::statistic;
  const Access declared = info.access[argument];
  return declared == Access::overwrite && !covers_storage(tensor) ? Access::write : declared;
}

void write_arguments(Recording& recording, Recipe& recipe, c10::ArrayRef<const c10::IValue> inputs) {
  ArgumentWriter(recording, recipe).write(inputs);
}

}  // namespace reprise::internal
