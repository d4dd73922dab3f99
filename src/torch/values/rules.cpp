#include "torch/values/rules.h"

#include <ATen/Context.h>

#include <algorithm>

#include "torch/libtorch/libtorch.h"
#include "torch/memory/arbiter.h"

namespace reprise::internal {

Rules::Rules(const SessionOptions& options)
    : places_(places_of(options)),
      verify_(options.verify),
      pack_(options.pack),
      forget_everything_(options.forget_everything),
      policy_(options.policy),
      counters_(options.name, places_.size()) {
  if (!options.disk.folder.empty()) disk_ = ValueDisk::open(options.disk);
  if (options.host.bytes == 0) return;
  for (const auto& [place, budget] : places_) {
    if (place->is_cpu() || host_) continue;
    host_ = HostMemory::open(options.host.bytes, *place, place_of(meter::cpu()) != nowhere);
  }
}

// It may be the last one who has them, and files and memory go with them: not under the lock.
Rules::~Rules() {
  if (disk_) Arbiter::discard_all(std::move(disk_));
  if (host_) Arbiter::discard_all(std::move(host_));
}

// ---- places --------------------------------------------------------------------------------------------------------

PlaceIndex Rules::place_of(const Meter& meter) const {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (&places_[i].place->meter() == &meter) return static_cast<PlaceIndex>(i);
  }
  return nowhere;
}

bool Rules::has(const c10::StorageImpl& storage) const {
  return std::any_of(places_.begin(), places_.end(), [&](const auto& one) { return one.place->has(storage); });
}

std::optional<c10::Device> Rules::accelerator() const {
  for (const auto& [place, budget] : places_) {
    if (!place->is_cpu()) return place->device();
  }
  return std::nullopt;
}

void Rules::budgets(std::span<const Bytes> bytes) {
  for (std::size_t i = 0; i < places_.size(); ++i) places_[i].budget = bytes[i];
}

bool Rules::may_forget() const {
  return always_forgets_ || forget_everything_ ||
         std::any_of(places_.begin(), places_.end(), [](const auto& one) { return one.budget != no_limit; });
}

OfferedTiers Rules::tiers(PlaceIndex place) const {
  const ValueTier* const tier = below(place);
  const auto terms = tier ? std::optional(tier->terms()) : std::nullopt;
  return {pack_ && places_[place].place->is_cpu(), terms};
}

ValueTier* Rules::below(PlaceIndex place) const {
  if (place == nowhere) return nullptr;
  const Place& above = *places_[place].place;
  if (above.is_cpu()) return disk_.get();
  return host_ && &host_->below() == &above ? host_.get() : nullptr;
}

void Rules::settle_tiers() const {
  if (disk_) (void)disk_->settle();
  if (host_) (void)host_->settle();
}

void Rules::settle_all_tiers() const {
  if (disk_) disk_->settle_all();
  if (host_) host_->settle_all();
}

void Rules::forgotten_at_once(const c10::StorageImpl& storage, Bytes bytes) {
  Rules& rules = counting();
  rules.counters_.forgotten(rules.place_of(meter::header_of(storage)), bytes);
}

// ---- policy --------------------------------------------------------------------------------------------------------

Choice Rules::choose(const PolicyOperator& op) try {
  Arbiter::expect_free("the policy is asked");
  return policy_(op);
} catch (const std::exception& error) {
  const Arbiter lock;
  counters_.note("the policy failed on " + std::string(op.name) + ": " + error.what());
  return Choice::decide;
}

void Rules::label(const at::Tensor& parameter, const std::string& module) {
  if (!parameter.defined() || !parameter.has_storage()) return;
  module_of_[libtorch::storage_of(parameter)] = &*modules_.insert(module).first;
}

const std::string* Rules::module_of(c10::ArrayRef<const c10::IValue> arguments) const {
  if (module_of_.empty()) return nullptr;
  const std::string* module = nullptr;
  const auto look_at = [&](const c10::IValue& argument) {
    if (module || !argument.isTensor() || !argument.toTensor().defined() || !argument.toTensor().has_storage()) return;
    const auto found = module_of_.find(libtorch::storage_of(argument.toTensor()));
    if (found != module_of_.end()) module = found->second;
  };
  for (const c10::IValue& argument : arguments) {
    look_at(argument);
    if (!argument.isTensorList()) continue;
    for (const c10::IValue& element : argument.toListRef()) look_at(element);
  }
  return module;
}

// ---- exactness -----------------------------------------------------------------------------------------------------

bool Rules::verifies(const RecordedValue& value) const {
  return verify_ != Verify::never && !value.unwritten && (verify_ == Verify::always || !value.verified);
}

const char* Rules::distrusted(const OperatorInfo& info, Id op, bool on_accelerator) const {
  if (info.varies_on_accelerators && on_accelerator && !at::globalContext().deterministicAlgorithms()) {
    return "on an accelerator it may give other bits each time, unless deterministic algorithms are on";
  }
  return distrusted_.count({&info, op}) != 0 ? "verify found that it does not give the same bits again" : nullptr;
}

void Rules::distrust(const OperatorInfo& info, Id op) {
  distrusted_.emplace(&info, op);
}

void Rules::learn_from(const Rules& other) {
  distrusted_ = other.distrusted_;
  for (const auto& [parameter, module] : other.module_of_) module_of_[parameter] = &*modules_.insert(*module).first;
}

}  // namespace reprise::internal
