// Rules: what a recording asks of whoever began it, a session or a checkpoint site, and what it tells it.
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
#include "torch/memory/place.h"
#include "torch/offload/host_memory.h"
#include "torch/offload/value_disk.h"
#include "torch/plans/advice.h"
#include "torch/values/counters.h"
#include "torch/values/regions.h"
#include "torch/values/session_places.h"

namespace reprise::internal {

// What is known about the smallest budget, once planning has found no plan for the one there is.
struct SmallestBudget {
  std::optional<Bytes> feasible = {};  // the smallest one with a proven plan
  std::optional<Bytes> floor = {};     // no plan can do with less
  std::string floor_set_by = "";
};

class Rules {
 public:
  // Throws BadOption if the options name places that cannot be, and DiskError if the options have a disk that cannot be
  // used.
  explicit Rules(const SessionOptions&);
  ~Rules();
  Rules(const Rules&) = delete;
  Rules& operator=(const Rules&) = delete;

  // ---- places ----
  // Where its values are counted, limited and forgotten. Not only under the lock, but see `settle`.
  [[nodiscard]] std::span<const LimitedPlace> places() const { return places_; }
  // The first one: plans are made for its bytes.
  [[nodiscard]] const Place& place() const { return *places_.front().place; }
  // Which of them counts this memory, or has this meter; `nowhere`: none.
  [[nodiscard]] PlaceIndex place_of(const meter::Header* header) const {
    return header ? place_of(*header->meter) : nowhere;
  }
  [[nodiscard]] PlaceIndex place_of(const Meter&) const;
  [[nodiscard]] bool has(const c10::StorageImpl&) const;
  // The first accelerator among them; none: only the CPU is.
  [[nodiscard]] std::optional<c10::Device> accelerator() const;

  // See Place::is_capturing: at any of them. Not only under the lock.
  [[nodiscard]] bool is_capturing() const {
    for (const LimitedPlace& limited : places_) {
      if (limited.place->is_capturing()) return true;
    }
    return false;
  }

  // Of the step that is open, or was last: at the first place, or at each of them.
  [[nodiscard]] Bytes budget() const { return places_.front().budget; }
  void budgets(std::span<const Bytes>);
  // It has this one place from now on. Only where nothing was recorded yet.
  void settle(const Place& place) { places_ = {{&place, no_limit}}; }

  // Values of the CPU, if that is one of its places.
  [[nodiscard]] bool packs() const { return pack_ && place_of(meter::cpu()) != nowhere; }
  // nullptr: none. Not only under the lock.
  [[nodiscard]] const std::shared_ptr<ValueDisk>& disk() const { return disk_; }
  [[nodiscard]] const std::shared_ptr<HostMemory>& host() const { return host_; }
  // The tier below one of its places; nullptr: none. Not only under the lock.
  [[nodiscard]] ValueTier* below(PlaceIndex) const;
  [[nodiscard]] bool has_tier() const { return disk_ || host_; }
  // What plans may use, or the values of one place, at present terms.
  [[nodiscard]] OfferedTiers tiers(PlaceIndex = 0) const;
  // See ValueTier: of all of them. Not under the lock.
  void settle_tiers() const;
  void settle_all_tiers() const;
  [[nodiscard]] bool forgets_everything() const { return forget_everything_; }

  [[nodiscard]] const SmallestBudget& smallest() const { return smallest_; }
  void smallest(SmallestBudget known) { smallest_ = std::move(known); }

  // Whether anything may be forgotten at all; if so, what came from outside is held for the recipes.
  [[nodiscard]] bool may_forget() const;
  // From now on, without a budget, too.
  void allow_forgetting() { always_forgets_ = true; }

  // ---- policy ----
  [[nodiscard]] bool has_policy() const { return static_cast<bool>(policy_); }
  // Not under the lock: it is the user's.
  [[nodiscard]] Choice choose(const PolicyOperator&);
  void label(const at::Tensor& parameter, const std::string& module);
  // The module whose parameter is among these arguments; nullptr: none.
  [[nodiscard]] const std::string* module_of(c10::ArrayRef<const c10::IValue> arguments) const;

  // ---- exactness ----
  [[nodiscard]] bool verifies(const RecordedValue&) const;
  // Why this operator is not to be replayed, if a replay found out, or if that is known of accelerators; nullptr: it
  // may be.
  [[nodiscard]] const char* distrusted(const OperatorInfo&, Id op, bool on_accelerator) const;
  void distrust(const OperatorInfo&, Id op);
  // Modules and operators are what they are to these rules.
  void learn_from(const Rules&);

  // What plans did with values like others.
  [[nodiscard]] Advice& advice() { return advice_; }

  // It is a checkpoint site's: what its regions do is counted by the session whose step is open on the thread, if any.
  void count_for_steps() { of_site_ = true; }
  [[nodiscard]] bool of_site() const { return of_site_; }
  [[nodiscard]] Counters& counters() { return counting().counters_; }
  // A value is not kept although autograd has saved it.
  void forgotten_at_once(const c10::StorageImpl&, Bytes);

 private:
  [[nodiscard]] Rules& counting() { return of_site_ && regions().step ? *regions().step : *this; }

  std::vector<LimitedPlace> places_;
  const Verify verify_;
  const bool pack_, forget_everything_;
  std::shared_ptr<ValueDisk> disk_;
  std::shared_ptr<HostMemory> host_;
  const Policy policy_;
  SmallestBudget smallest_;
  bool always_forgets_ = false;
  bool of_site_ = false;
  std::set<std::pair<const OperatorInfo*, Id>> distrusted_;
  std::set<std::string> modules_;
  std::unordered_map<const c10::StorageImpl*, const std::string*> module_of_;  // by the storage of a parameter
  Advice advice_;
  Counters counters_;
};

}  // namespace reprise::internal
