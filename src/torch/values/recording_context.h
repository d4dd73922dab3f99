// RecordingContext: what a recording asks of the session or checkpoint site that began it, and what it
// reports there.
//
// They live as long as the last recording that has them. Everything here happens under the arbiter's lock, unless it
// says otherwise.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reprise/torch/session.h"
#include "torch/memory/counted_device.h"
#include "torch/offload/disk_tier.h"
#include "torch/offload/host_tier.h"
#include "torch/plans/eviction_hints.h"
#include "torch/values/counters.h"
#include "torch/values/device_options.h"
#include "torch/values/regions.h"

namespace reprise::internal {

// What is known about the smallest budget, once planning has found no plan for the one there is.
struct SmallestBudget {
  std::optional<Bytes> feasible = {};  // the smallest one with a proven plan
  std::optional<Bytes> floor = {};     // no plan can do with less
  std::string floor_set_by = "";
};

class RecordingContext {
 public:
  // Throws BadOption if the options name devices that cannot be, and DiskError if the options have a disk that cannot
  // be used.
  explicit RecordingContext(const SessionOptions&);
  ~RecordingContext();
  RecordingContext(const RecordingContext&) = delete;
  RecordingContext& operator=(const RecordingContext&) = delete;

  // ---- devices ----
  // Returns the devices on which its values are counted, limited and evicted. Not only under the lock, but see
  // `settle`.
  [[nodiscard]] std::span<const LimitedDevice> devices() const { return devices_; }
  // Returns the first of them: plans are made for its bytes.
  [[nodiscard]] const CountedDevice& device() const { return *devices_.front().device; }
  // Returns which of them counts this memory, or has this meter; `untracked` if none does.
  [[nodiscard]] DeviceOrdinal device_of(const meter::Header* header) const {
    return header ? device_of(*header->meter) : untracked;
  }
  [[nodiscard]] DeviceOrdinal device_of(const Meter&) const;
  [[nodiscard]] bool has(const c10::StorageImpl&) const;
  // Returns the first accelerator among them. Empty if there is only the CPU.
  [[nodiscard]] std::optional<c10::Device> accelerator() const;

  // See CountedDevice::is_capturing: at any of them. Not only under the lock.
  [[nodiscard]] bool is_capturing() const {
    for (const LimitedDevice& limited : devices_) {
      if (limited.device->is_capturing()) return true;
    }
    return false;
  }

  // Of the step that is open, or was last: at the first device, or at each of them.
  [[nodiscard]] Bytes budget() const { return devices_.front().budget; }
  void budgets(std::span<const Bytes>);
  // Replaces the devices. Requires that nothing was recorded.
  void settle(const CountedDevice& device) { devices_ = {{&device, no_limit}}; }

  // Values of the CPU, if that is one of its devices.
  [[nodiscard]] bool packs() const { return pack_ && device_of(meter::cpu()) != untracked; }
  // nullptr: none. Not only under the lock.
  [[nodiscard]] const std::shared_ptr<DiskTransferTier>& disk() const { return disk_; }
  [[nodiscard]] const std::shared_ptr<HostTransferTier>& host() const { return host_; }
  // Returns the tier below one of its devices. Null if there is none. Not only under the lock.
  [[nodiscard]] TransferTier* below(DeviceOrdinal) const;
  [[nodiscard]] bool has_tier() const { return disk_ || host_; }
  // Returns what plans, or the values of one device, may use, at present costs.
  [[nodiscard]] OfferedTiers tiers(DeviceOrdinal = 0) const;
  // See TransferTier: of all of them. Not under the lock.
  void settle_all_tiers() const;
  [[nodiscard]] bool evicts_everything() const { return evict_everything_; }

  [[nodiscard]] const SmallestBudget& smallest() const { return smallest_; }
  void smallest(SmallestBudget known) { smallest_ = std::move(known); }

  // Returns whether anything may be evicted at all; if so, what came from outside is held for the recipes.
  [[nodiscard]] bool may_evict() const;
  // Allows evicting without a budget, from now on.
  void allow_evicting() { always_evicts_ = true; }

  // ---- policy ----
  [[nodiscard]] bool has_policy() const { return static_cast<bool>(policy_); }
  // Not under the lock: it is the user's.
  [[nodiscard]] Choice choose(const PolicyOperator&);
  void label(const at::Tensor& parameter, const std::string& module);
  // Returns the module whose parameter is among these arguments. Null if none is.
  [[nodiscard]] const std::string* module_of(c10::ArrayRef<const c10::IValue> arguments) const;

  // ---- exactness ----
  [[nodiscard]] bool verifies(const RecordedValue&) const;
  // Returns whether what comes back from a tier is compared with what was put, by the same rule as replays: a value, or
  // the gradients of a backward run.
  [[nodiscard]] bool verifies_copy(const RecordedValue&) const;
  [[nodiscard]] bool verifies_copies_of_gradients() const;
  void mark_gradients_verified() { gradients_verified_ = true; }
  // Returns why this operator is not to be replayed, if a replay found out, or if that is known of accelerators. Null
  // if it may be.
  [[nodiscard]] const char* why_inexact(const OperatorInfo&, Id op, bool on_accelerator) const;
  void mark_inexact(const OperatorInfo&, Id op);
  // Copies what that context knows about modules and operators.
  void learn_from(const RecordingContext&);

  // Returns what plans did with similar values.
  [[nodiscard]] EvictionHints& hints() { return hints_; }

  // Where the budgets come from: from bytes, or from a share that plain steps measure, or have measured.
  enum class Share : std::uint8_t { none, measuring, measured };
  [[nodiscard]] Share share() const { return share_; }
  void set_share(Share share) { share_ = share; }

  // Marks it as a checkpoint site's: what its regions do is counted by the session whose step is open on the thread.
  void count_for_steps() { of_site_ = true; }
  [[nodiscard]] bool of_site() const { return of_site_; }
  [[nodiscard]] Counters& counters() { return counting().counters_; }
  // Counts a value that is not kept although autograd has saved it.
  void evicted_at_once(const c10::StorageImpl&, Bytes);

 private:
  [[nodiscard]] RecordingContext& counting() { return of_site_ && regions().step ? *regions().step : *this; }

  std::vector<LimitedDevice> devices_;
  const Verify verify_;
  const bool pack_, evict_everything_;
  std::shared_ptr<DiskTransferTier> disk_;
  std::shared_ptr<HostTransferTier> host_;
  const Policy policy_;
  SmallestBudget smallest_;
  bool always_evicts_ = false;
  bool of_site_ = false;
  Share share_ = Share::none;
  bool gradients_verified_ = false;
  std::set<std::pair<const OperatorInfo*, Id>> inexact_;
  std::set<std::string> modules_;
  std::unordered_map<const c10::StorageImpl*, const std::string*> module_of_;  // by the storage of a parameter
  EvictionHints hints_;
  Counters counters_;
};

}  // namespace reprise::internal
