#include "torch/recipes/recipes.h"

#include <algorithm>
#include <cstring>

#include "torch/libtorch/bytes_of.h"

namespace reprise::internal {
namespace {

template <class T>
std::vector<T> head(const std::vector<T>& all, std::uint32_t count) {
  return {all.begin(), all.begin() + count};
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.device() == b.device() &&
         a.device().is_cpu() && a.is_contiguous() && b.is_contiguous() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

bool same_operator(const Recipes& a, const Recipes& b, Id op) {
  const Recipe &x = a.operators[op], &y = b.operators[op];
  if (x.info != y.info || x.grad_mode != y.grad_mode || x.default_type != y.default_type || x.settings != y.settings) {
    return false;
  }
  const auto mine = a.arguments_of(op), theirs = b.arguments_of(op);
  if (mine.size() != theirs.size()) return false;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].kind != theirs[i].kind || mine[i].count != theirs[i].count) return false;
    if (mine[i].kind == Argument::Kind::constant &&
        !same_constant(a.constants[mine[i].first], b.constants[theirs[i].first])) {
      return false;
    }
  }
  const auto same_reference = [&](const Reference& r, const Reference& s) {
    return r.value == s.value && r.defined == s.defined && r.plain == s.plain &&
           (!r.defined || !r.plain || r.view == s.view);
  };
  const auto same_output = [&](const Output& r, const Output& s) {
    return r.value == s.value && r.result == s.result && r.element == s.element && r.write == s.write &&
           a.values[r.value].bytes == b.values[s.value].bytes;
  };
  const auto r = a.references_of(op), s = b.references_of(op);
  const auto o = a.outputs_of(op), q = b.outputs_of(op);
  return std::equal(r.begin(), r.end(), s.begin(), s.end(), same_reference) &&
         std::equal(o.begin(), o.end(), q.begin(), q.end(), same_output);
}

std::uint32_t mixed(std::uint32_t hash, std::uint32_t with) {
  hash = (hash ^ with) * 0x9e3779b1u;
  return hash ^ (hash >> 15);
}

std::optional<c10::Device> first_accelerator(std::span<const Reference> references) {
  for (const Reference& reference : references) {
    if (reference.defined && !reference.view.device.is_cpu()) return reference.view.device;
  }
  return std::nullopt;
}

constexpr Bytes behind_constant = 32;  // what lies behind a constant that is a list

}  // namespace

Recipes Recipes::before(Id op, std::optional<std::size_t> outputs_too) const {
  if (op >= static_cast<Id>(operators.size())) return *this;
  const Marks start = operators[op].start, end = outputs_too ? end_of(op) : start;
  Recipes copy;
  copy.operators = head(operators, static_cast<std::uint32_t>(op + (outputs_too ? 1 : 0)));
  copy.arguments = head(arguments, end.arguments);
  copy.constants = head(constants, end.constants);
  copy.references = head(references, end.references);
  copy.writes = head(writes, end.writes);
  copy.outputs = head(outputs, start.outputs + static_cast<std::uint32_t>(outputs_too.value_or(0)));
  // What a step that diverges never met is not taken along: shapes that change would make each list longer than the
  // last.
  Id most = no_value;
  for (const Reference& reference : copy.references) most = std::max(most, reference.value);
  for (const Write& write : copy.writes) most = std::max(most, write.before);
  for (const Output& output : copy.outputs) most = std::max(most, output.value);
  copy.values = head(values, static_cast<std::uint32_t>(most + 1));
  const Id made_up_to = outputs_too ? op : op - 1;
  for (RecordedValue& value : copy.values) {
    if (value.maker > made_up_to) value.maker = no_operator;
  }
  for (const Output& output : outputs_of(op).subspan(outputs_too.value_or(0))) {
    if (static_cast<std::size_t>(output.value) < copy.values.size()) copy.values[output.value].maker = no_operator;
  }
  return copy;
}

std::uint64_t Recipes::fingerprint_of(Id op) const {
  std::uint64_t hash = operators[op].info->name_hash;
  const auto add = [&](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  };
  add(operators[op].why_not_replayable != nullptr);
  for (const Reference& reference : references_of(op)) add(reference.value);
  for (const Output& output : outputs_of(op)) {
    add(output.value);
    add(values[output.value].bytes);
  }
  return hash;
}

StructuralHash Recipes::structural_hash_of(const OperatorInfo& info, std::uint32_t first_reference) const {
  constexpr std::uint32_t from_outside = 1;
  StructuralHash structural_hash;
  structural_hash.fill(info.name_hash);
  for (std::size_t i = first_reference; i < references.size(); ++i) {
    const Id value = references[i].value;
    const Id maker = value == no_value ? no_operator : values[value].maker;
    for (std::size_t k = 1; k < structural_hash.size(); ++k) {
      structural_hash[k] =
          mixed(structural_hash[k], maker == no_operator ? from_outside : operators[maker].structural_hash[k - 1]);
    }
  }
  return structural_hash;
}

std::optional<c10::Device> Recipes::accelerator_of(std::uint32_t first_reference) const {
  return first_accelerator(std::span(references).subspan(first_reference));
}

std::optional<c10::Device> Recipes::accelerator_of_operator(Id op) const {
  return first_accelerator(references_of(op));
}

void Recipes::mark_not_replayable(Id op, const char* why) {
  operators[op].why_not_replayable = why;
  for (const Output& output : outputs_of(op)) values[output.value].maker = no_operator;
}

void Recipes::shrink() {
  const auto shrink = [](auto&... lists) { (lists.shrink_to_fit(), ...); };
  shrink(operators, values, arguments, constants, references, writes, outputs);
}

Bytes Recipes::bytes() const {
  return bytes_of(operators, values, arguments, constants, references, writes, outputs) +
         static_cast<Bytes>(constants.size()) * behind_constant;
}

bool same_constant(const c10::IValue& a, const c10::IValue& b) {
  if (a.isNone() || b.isNone()) return a.isNone() && b.isNone();
  if (a.isInt()) return b.isInt() && a.toInt() == b.toInt();
  if (a.isDouble()) {
    if (!b.isDouble()) return false;
    const double x = a.toDouble(), y = b.toDouble();
    return std::memcmp(&x, &y, sizeof x) == 0;  // NaN is itself, -0 is not 0
  }
  if (a.isBool()) return b.isBool() && a.toBool() == b.toBool();
  if (a.isTensor()) {
    if (!b.isTensor()) return false;
    if (!a.toTensor().defined() || !b.toTensor().defined()) return a.toTensor().defined() == b.toTensor().defined();
    return same_bits(a.toTensor(), b.toTensor());
  }
  if (a.isIntList()) {
    if (!b.isIntList()) return false;
    const auto x = a.toIntList(), y = b.toIntList();
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  }
  if (a.isList()) {
    if (!b.isList()) return false;
    const auto x = a.toListRef(), y = b.toListRef();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_constant);
  }
  if (a.isString()) return b.isString() && a.toStringView() == b.toStringView();
  if (a.isDevice()) return b.isDevice() && a.toDevice() == b.toDevice();
  if (a.isComplexDouble()) {
    return b.isComplexDouble() && a.toComplexDouble() == b.toComplexDouble();
  }
  if (a.isGenerator()) return b.isGenerator();  // its state is part of the pass, not of the recipe
  return a.is(b);
}

Id common_operators(const Recipes& a, const Recipes& b) {
  const auto most = static_cast<Id>(std::min(a.operators.size(), b.operators.size()));
  Id op = 0;
  while (op < most && same_operator(a, b, op)) ++op;
  return op;
}

}  // namespace reprise::internal
