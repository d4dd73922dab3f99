#include "torch/record/follower.h"

#include "torch/evict/saved_values.h"
#include "torch/record/arguments.h"

namespace reprise::internal {
namespace {

class ArgumentMatcher {
 public:
  ArgumentMatcher(Recording& recording, const Recipes& recipes, Id op)
      : recording_(recording), recipes_(recipes), op_(op) {}

  [[nodiscard]] bool matches(const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
    if (op_ >= static_cast<Id>(recipes_.operators.size())) return false;
    const Recipe& recipe = recipes_.operators[op_];
    if (recipe.info != &info || recipe.grad_mode != at::GradMode::is_enabled()) return false;
    if (recipe.default_type != libtorch::default_type() || recipe.settings != Settings::now()) return false;
    const auto arguments = recipes_.arguments_of(op_);
    if (arguments.size() != inputs.size()) return false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!matches(arguments[i], inputs[i])) return false;
    }
    return true;
  }

  // The recording follows these recipes, and their values from outside that were met here are known from now on.
  void accept() {
    for (const auto& [value, tensor] : met_) {
      const Id saved_before = bindings().find(libtorch::storage_of(*tensor));
      recording_.adopt_from_outside(value, *tensor);
      if (saved_before != no_value) follow_writes(recording_, saved_before, value);
    }
    for (const auto& [index, input] : changed_) recording_.cursor().change_constant(index, *input);
  }

 private:
  // Numbers may change from step to step (a rate, a weight in the loss): the bytes stay the same.
  static bool is_number(const c10::IValue& constant) {
    return constant.isDouble() || constant.isInt() || (constant.isTensor() && constant.toTensor().defined());
  }

  bool matches(const Argument& argument, const c10::IValue& input) {
    switch (argument.kind) {
      case Argument::Kind::constant: {
        if (!is_constant(input)) return false;
        const c10::IValue& expected = recipes_.constants[argument.first];
        if (same_constant(expected, input)) return true;
        if (!is_number(expected) || !is_number(input)) return false;
        changed_.emplace_back(argument.first, &input);
        return true;
      }
      case Argument::Kind::unknown: return input.isTensor() && !libtorch::is_plain(input.toTensor());
      case Argument::Kind::tensor:
        return input.isTensor() && !is_constant(input.toTensor()) &&
               matches(recipes_.references[argument.first], input.toTensor());
      case Argument::Kind::tensors:
      case Argument::Kind::optional_tensors: break;
    }
    if (!input.isList()) return false;
    const auto elements = input.toListRef();
    if (elements.size() != argument.count) return false;
    for (std::uint32_t k = 0; k < argument.count; ++k) {
      const Reference& reference = recipes_.references[argument.first + k];
      if (!elements[k].isTensor()) {
        if (reference.defined) return false;
      } else if (!matches(reference, elements[k].toTensor())) {
        return false;
      }
    }
    return true;
  }

  bool matches(const Reference& reference, const at::Tensor& tensor) {
    if (!tensor.defined() || !reference.defined) return tensor.defined() == reference.defined;
    const bool plain = libtorch::is_plain(tensor);
    if (!plain || !reference.plain) return plain == reference.plain;
    if (!reference.view.matches(tensor)) return false;
    return reference.value == no_value || holds(tensor, reference.value);
  }

  bool holds(const at::Tensor& tensor, Id expected) {
    c10::StorageImpl* const storage = libtorch::storage_of(tensor);
    const Id value = bindings().find(storage);
    if (value == expected) return !bindings().written_unseen(value);
    // A value from outside that is met for the first time; it may have been saved before any operator used it.
    if (recipes_.values[expected].maker != no_operator) return false;
    const Values& values = recording_.values();
    if (static_cast<std::size_t>(expected) < values.size() &&
        values.provenance().availability(expected) != Availability::not_seen)
      return false;
    if (value != no_value && recording_.cursor().in_recipes(value)) return false;
    for (const auto& [other, met] : met_) {
      if ((other == expected) != (libtorch::storage_of(*met) == storage)) return false;
      if (other == expected) return true;
    }
    met_.emplace_back(expected, &tensor);
    return true;
  }

  [[nodiscard]] const Bindings& bindings() const { return recording_.values().bindings(); }

  Recording& recording_;
  const Recipes& recipes_;
  const Id op_;
  c10::SmallVector<std::pair<Id, const at::Tensor*>, 4> met_;
  c10::SmallVector<std::pair<std::uint32_t, const c10::IValue*>, 4> changed_;
};

// Returns whether the next operator of these recipes is this one; then the recording follows them, which may be another
// pass's.
bool accepts(Recording& recording, const Recipes& recipes, const std::shared_ptr<RecordedPass>& another,
             const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
  ArgumentMatcher matcher(recording, recipes, recording.cursor().next());
  if (!matcher.matches(info, inputs)) return false;
  if (another) recording.change_to(another);
  matcher.accept();
  return true;
}

// Tries the other passes that began like this one.
bool finds_alternative(Recording& recording, const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
  const RecipeCursor& cursor = recording.cursor();
  const std::shared_ptr<RecordedPass> from = recording.pass();
  if (!from || recording.journal().moment() != cursor.next()) return false;
  if (cursor.values() != cursor.recipes().values.size()) return false;
  for (const auto& [other, common] : from->common) {
    const auto pass = other.lock();
    if (pass && common >= cursor.next() && accepts(recording, *pass->recipes, pass, info, inputs)) return true;
  }
  return false;
}

std::string name_of_next(const RecipeCursor& cursor) {
  return cursor.complete() ? "the end of the forward pass" : cursor.recipes().operators[cursor.next()].info->name;
}

}  // namespace

bool follow(const Arbiter&, Recording& recording, const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
  const RecipeCursor& cursor = recording.cursor();
  if (!accepts(recording, cursor.recipes(), nullptr, info, inputs) && !finds_alternative(recording, info, inputs)) {
    const std::string expected = name_of_next(cursor);
    diverge(recording, "operator " + std::to_string(cursor.next()) + " was " + expected + " and is " + info.name +
                           (expected == info.name ? " with other arguments" : ""));
    return false;
  }
  for (const Reference& reference : cursor.recipes().references_of(cursor.next())) {
    if (reference.value != no_value) recording.values().provenance().use(reference.value);
  }
  return true;
}

void diverge(Recording& recording, const std::string& why, std::optional<std::size_t> outputs) {
  const Arbiter lock;
  RecipeCursor& cursor = recording.cursor();
  Values& values = recording.values();
  Journal& journal = recording.journal();
  const bool in_step = !recording.context().of_site();  // calls of a site may differ
  if (in_step && (cursor.next() > 0 || recording.expected())) recording.context().counters().diverged(why);
  recording.drop_plan();
  if (!cursor.following()) return;
  const std::size_t known = cursor.recipes().values.size();
  const std::size_t in_common = cursor.leave(outputs);
  values.renumber(known, in_common);
  const std::shared_ptr<RecordedPass> left = recording.leave_pass();
  if (left && journal.lost_count()) {
    left->record_anew = true;
  } else if (left && journal.plannable()) {
    journal.take_over(left->profile, in_common, values.size(), [&](Id value) {
      return values.provenance().availability(value) != Availability::not_seen && values.recomputable(value);
    });
    const auto device = recording.context().accelerator();
    if (device && !journal.late()) journal.measure_late(*device);
  }
}

}  // namespace reprise::internal
