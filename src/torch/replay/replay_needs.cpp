#include "torch/replay/replay_needs.h"

#include <algorithm>

#include "reprise/torch/errors.h"

namespace reprise::internal {
namespace {

void check_unchanged(Recording& r, Id op, int argument, Id value) {
  Values& values = r.values();
  if (values.recomputable(value)) return;
  const Availability availability = values.provenance().availability(value);
  const bool had = values.kept(value) || values.copies(value).below();
  const bool unwritten = availability < Availability::lost && had && !values.bindings().written_unseen(value);
  if (unwritten && values.has_contents(value)) return;
  for (const SavedTensor* const saved : values.pending().of(value)) {
    saved->check_unmoved(true);  // an error of the user's, in LibTorch's words
  }
  const OperatorInfo& info = *r.cursor().recipes().operators[op].info;
  throw ChangedInputError({info.name, op, argument, info.handle.schema().arguments()[argument].name(),
                           availability == Availability::lost_no_room, unwritten || values.is_emptied(value)});
}

}  // namespace

void fail_lost(Recording& r, Id value, const std::string& why) {
  const TransferTier& tier = *r.context().below(r.values().device(value));
  std::rethrow_exception(
      tier.lost_error("[session] a value that cannot be recomputed was offloaded, and is lost: " + why));
}

void check_inputs(Recording& r, Id op) {
  const Recipes& recipes = r.cursor().recipes();
  const auto arguments = recipes.arguments_of(op);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind == Argument::Kind::constant) continue;
    for (std::uint32_t k = 0; k < arguments[i].count; ++k) {
      const Id value = recipes.references[arguments[i].first + k].value;
      if (value != no_value) check_unchanged(r, op, static_cast<int>(i), value);
    }
  }
}

// ---- collecting ----------------------------------------------------------------------------------------------------

void ReplayNeeds::collect(Id value) {
  if (touch(value)) open_.push_back(value);
  collect_open();
}

void ReplayNeeds::collect_operator(Id op) {
  add_operator(op);
  collect_open();
}

void ReplayNeeds::collect_alone(Id op) {
  operators_.push_back(op);
  for (const Reference& reference : r_.cursor().recipes().references_of(op)) {
    if (reference.value != no_value) ++slots_[reference.value].uses;
  }
}

void ReplayNeeds::pin(Id value, Slot& slot) {
  slot.storage = r_.values().storage(value);
  if (slot.storage) slot.made_on = r_.values().made_on(value);
  if (!slot.storage) slot.copy = r_.values().copies(value).usable();
}

void ReplayNeeds::collect_open() {
  const Values& values = r_.values();
  while (!open_.empty()) {
    const Id value = open_.back();
    open_.pop_back();
    Slot& slot = slots_[value];
    if (from_ != From::leaves || !values.recomputable(value)) pin(value, slot);
    if (slot.storage || slot.copy) continue;
    if (!values.recomputable(value) && values.copies(value).below())
      fail_lost(r_, value, "its copy could not be had before");
    TORCH_INTERNAL_ASSERT(values.recomputable(value), "[reprise] value ", value,
                          " is neither resident nor has it a recipe");
    add_operator(r_.cursor().info(value).maker);
  }
}

void ReplayNeeds::add_operator(Id op) {
  const Recipes& recipes = r_.cursor().recipes();
  if (collected_.empty()) collected_.resize(recipes.operators.size());
  if (collected_[op]) return;
  collected_[op] = true;
  operators_.push_back(op);
  check_inputs(r_, op);
  for (const Reference& reference : recipes.references_of(op)) {
    if (reference.value == no_value) continue;
    if (touch(reference.value)) open_.push_back(reference.value);
    ++slots_[reference.value].uses;
  }
}

bool ReplayNeeds::collect_siblings() {
  constexpr Id window = 32;  // operators: what lies outside of it is needed at another time
  if (operators_.empty() || r_.context().evicts_everything()) return false;
  const auto [first, last] = std::minmax_element(operators_.begin(), operators_.end());
  const Id end = std::min(r_.cursor().next(), *last + window);
  std::vector<Id> siblings;
  for (Id op = std::max(*first, *last - window); op < end; ++op) {
    if (is_sibling(op)) siblings.push_back(op);
  }
  for (const Id op : siblings) collect_operator(op);
  return !siblings.empty();
}

// It needs nothing but what is there and what is collected, and of that something that takes longer than itself and
// would be gone.
bool ReplayNeeds::is_sibling(Id op) const {
  const Recipes& recipes = r_.cursor().recipes();
  const Values& values = r_.values();
  if (collected_[op]) return false;
  const auto outputs = recipes.outputs_of(op);
  const bool awaited = std::any_of(outputs.begin(), outputs.end(), [&](const Output& output) {
    return values.recomputable(output.value) && r_.awaits(output.value) && !values.copies(output.value).packed() &&
           !values.resident(output.value);
  });
  if (!awaited) return false;
  bool worth_it = false;
  for (const Reference& reference : recipes.references_of(op)) {
    if (reference.value == no_value) continue;
    const Id maker = r_.cursor().info(reference.value).maker;
    if (maker != no_operator && collected_[maker] && values.recomputable(reference.value)) {
      worth_it |= !r_.awaits(reference.value) && r_.journal().cost_of(maker) > r_.journal().cost_of(op);
    } else if (!values.recomputable(reference.value) || !values.resident(reference.value)) {
      return false;  // from outside: whether it is what it was is for those to find out who ask
    }
  }
  return worth_it;
}

// ---- what was collected --------------------------------------------------------------------------------------------

const std::vector<Id>& ReplayNeeds::operators() {
  std::sort(operators_.begin(), operators_.end());
  return operators_;
}

ReplayNeeds::Slot* ReplayNeeds::find(Id value) {
  const auto found = slots_.find(value);
  return found == slots_.end() ? nullptr : &found->second;
}

}  // namespace reprise::internal
