#include "torch/values/recording_context.h"

#include <ATen/Context.h>

#include <algorithm>

#include "torch/libtorch/libtorch.h"
#include "torch/memory/arbiter.h"

namespace reprise::internal {

RecordingContext::RecordingContext(const SessionOptions& options)
    : devices_(devices_of(options)),
      verify_(options.verify),
      pack_(options.pack),
      evict_everything_(options.evict_everything),
      policy_(options.policy),
      counters_(options.name, devices_.size()) {
  if (!options.disk.folder.empty()) disk_ = DiskTransferTier::open(DiskOfTest::settings(options.disk));
  if (options.host.bytes == 0) return;
  for (const auto& [device, budget] : devices_) {
    if (device->is_cpu() || host_) continue;
    host_ = HostTransferTier::open(options.host.bytes, *device, device_of(meter::cpu()) != untracked);
  }
}

// It may be the last one who has them, and files and memory go with them: not under the lock.
RecordingContext::~RecordingContext() {
  if (disk_) Arbiter::discard_all(std::move(disk_));
  if (host_) Arbiter::discard_all(std::move(host_));
}

// ---- devices --------------------------------------------------------------------------------------------------------

DeviceOrdinal RecordingContext::device_of(const Meter& meter) const {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (&devices_[i].device->meter() == &meter) return static_cast<DeviceOrdinal>(i);
  }
  return untracked;
}

bool RecordingContext::has(const c10::StorageImpl& storage) const {
  return std::any_of(devices_.begin(), devices_.end(), [&](const auto& one) { return one.device->has(storage); });
}

std::optional<c10::Device> RecordingContext::accelerator() const {
  for (const auto& [device, budget] : devices_) {
    if (!device->is_cpu()) return device->device();
  }
  return std::nullopt;
}

void RecordingContext::budgets(std::span<const Bytes> bytes) {
  for (std::size_t i = 0; i < devices_.size(); ++i) devices_[i].budget = bytes[i];
}

bool RecordingContext::may_evict() const {
  return always_evicts_ || evict_everything_ ||
         std::any_of(devices_.begin(), devices_.end(), [](const auto& one) { return one.budget != no_limit; });
}

OfferedTiers RecordingContext::tiers(DeviceOrdinal device) const {
  const TransferTier* const tier = below(device);
  const auto terms = tier ? std::optional(tier->costs()) : std::nullopt;
  return {pack_ && devices_[device].device->is_cpu(), terms};
}

TransferTier* RecordingContext::below(DeviceOrdinal device) const {
  if (device == untracked) return nullptr;
  const CountedDevice& above = *devices_[device].device;
  if (above.is_cpu()) return disk_.get();
  return host_ && &host_->above() == &above ? host_.get() : nullptr;
}

void RecordingContext::settle_all_tiers() const {
  for (TransferTier* const tier : {static_cast<TransferTier*>(disk_.get()), static_cast<TransferTier*>(host_.get())}) {
    try {
      if (tier) tier->finish_all();
    } catch (const std::exception&) {  // of a device that has failed: the program meets it itself
    }
  }
}

void RecordingContext::evicted_at_once(const c10::StorageImpl& storage, Bytes bytes) {
  RecordingContext& context = counting();
  context.counters_.evicted(context.device_of(meter::header_of(storage)), bytes);
}

// ---- policy --------------------------------------------------------------------------------------------------------

Choice RecordingContext::choose(const PolicyOperator& op) try {
  Arbiter::expect_free("the policy is asked");
  return policy_(op);
} catch (const std::exception& error) {
  const Arbiter lock;
  counters_.note("the policy failed on " + std::string(op.name) + ": " + error.what());
  return Choice::automatic;
}

void RecordingContext::label(const at::Tensor& parameter, const std::string& module) {
  if (!parameter.defined() || !parameter.has_storage()) return;
  module_of_[libtorch::storage_of(parameter)] = &*modules_.insert(module).first;
}

const std::string* RecordingContext::module_of(c10::ArrayRef<const c10::IValue> arguments) const {
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

bool RecordingContext::verifies(const RecordedValue& value) const {
  return verify_ != Verify::never && !value.partly_uninitialized && (verify_ == Verify::always || !value.verified);
}

bool RecordingContext::verifies_copy(const RecordedValue& value) const {
  return verify_ == Verify::always || (verify_ == Verify::first_time && !value.copy_verified);
}

bool RecordingContext::verifies_copies_of_gradients() const {
  return verify_ == Verify::always || (verify_ == Verify::first_time && !gradients_verified_);
}

const char* RecordingContext::why_inexact(const OperatorInfo& info, Id op, bool on_accelerator) const {
  if (info.varies_on_accelerators && on_accelerator && !at::globalContext().deterministicAlgorithms()) {
    return "on an accelerator it may give other bits each time, unless deterministic algorithms are on";
  }
  return inexact_.count({&info, op}) != 0 ? "verify found that it does not give the same bits again" : nullptr;
}

void RecordingContext::mark_inexact(const OperatorInfo& info, Id op) {
  inexact_.emplace(&info, op);
}

void RecordingContext::learn_from(const RecordingContext& other) {
  inexact_ = other.inexact_;
  for (const auto& [parameter, module] : other.module_of_) module_of_[parameter] = &*modules_.insert(*module).first;
}

}  // namespace reprise::internal
