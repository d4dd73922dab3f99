#include "torch/evict/pressure.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "reprise/torch/errors.h"
#include "torch/evict/offloaded_gradients.h"
#include "torch/evict/victims.h"
#include "torch/libtorch/error_translation.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/offload/value_tiers.h"
#include "torch/values/recording.h"
#include "torch/values/recordings.h"

namespace reprise::internal {
namespace {

// What is under way in a recording; empty: nothing that it knows of.
std::string under_way(const Recording& r) {
  if (r.call()) {
    const Id op = r.cursor().next();
    return "operator " + std::to_string(op) + " '" + r.cursor().recipes().operators[op].info->name + "'";
  }
  const Id event = r.journal().moment() - 1;
  if (!r.in_backward() || event < 0) return "";
  const std::string name(r.journal().profile().event_name(event));
  return name.empty() ? "" : "moment " + std::to_string(event) + " '" + name + "'";
}

// What live bytes belong to.
struct Pinned {
  std::map<std::string, Bytes> by_owner;
  Bytes known = 0;
};

void add_values(const Recording& r, DeviceOrdinal device, Pinned& pinned, BudgetError::Facts& facts) {
  const Values& values = r.values();
  for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
    if (values.device(v) != device) continue;
    c10::Storage storage = values.storage_even_if_evicted(v);
    if (!storage) continue;
    const auto holders = storage.use_count();
    Arbiter::discard(std::move(storage));
    const Id maker = r.cursor().info(v).maker;
    if (values.kept(v) && values.recomputable(v) && r.cursor().choice_of(v) == Choice::keep) {
      facts.kept_by_policy += values.bytes(v);
    }
    // Of what came from outside, only what the program has no handle on is there because of us.
    if (maker == no_operator && holders > (values.kept(v) ? 2 : 1)) continue;
    pinned.by_owner[maker == no_operator ? "tensors from outside that recipes need"
                                         : "results of " + r.cursor().recipes().operators[maker].info->name +
                                               " in use"] += values.bytes(v);
    pinned.known += values.bytes(v);
  }
}

void add_budgets(const Recording& r, DeviceOrdinal device, BudgetError::Facts& facts) {
  if (r.context().accelerator()) facts.cpu_alone = false;
  if (facts.where.empty()) facts.where = under_way(r);
  if (device != 0) return;  // plans are for the first
  const SmallestBudget& smallest = r.context().smallest();
  if (smallest.feasible) facts.smallest_feasible = smallest.feasible;
  if (smallest.floor) {
    facts.floor = smallest.floor;
    facts.floor_set_by = smallest.floor_set_by;
  }
}

[[noreturn]] void throw_budget_error(const Arbiter&, const Meter& meter, Bytes wanted) {
  BudgetError::Facts facts;
  facts.device = meter.device();
  facts.budget = meter.limit();
  facts.live = meter.live();
  facts.requested = wanted;
  Pinned pinned;
  for (const Recording* const r : Recordings::of_process().all()) {
    const DeviceOrdinal device = r->context().device_of(meter);
    if (device == untracked) continue;
    add_values(*r, device, pinned, facts);
    add_budgets(*r, device, facts);
  }
  pinned.by_owner["parameters, gradients and other bytes"] += facts.live - pinned.known;
  for (const auto& [owner, bytes] : pinned.by_owner) facts.pinned.push_back({owner, bytes});
  std::stable_sort(facts.pinned.begin(), facts.pinned.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (const BudgetAdvice* const advice = budget_advice()) {
    facts.advice = facts.device == "cpu" && facts.cpu_alone ? advice->on_cpu : advice->elsewhere;
  }
  throw BudgetError(std::move(facts));
}

// ---- the ladder ----------------------------------------------------------------------------------------------------

struct Attempt {
  const Meter& meter;
  bool reconsidered = false;
};

// One way to free some bytes. Returns false if there is nothing to be had in this way.
struct Step {
  std::string_view name;
  bool (*free_some)(Attempt&);
};

// Throws what goes wrong when the lock is free, as on a device that has failed.
template <auto free_some>
bool locked(Attempt& attempt) {
  Arbiter lock;
  const bool any = free_some(lock, attempt.meter);
  lock.unlock();
  return any;
}

bool finish_puts(Attempt&) {
  return ValueTiers::of_process().finish_next_put();
}

bool release_large_origins(const Arbiter& lock, const Meter& meter) {
  constexpr Bytes much_larger = 8;  // than what recipes make of them
  return release_origins(lock, meter, much_larger);
}

// Once, because they are the same again afterwards.
bool reconsider_skipped_values(Attempt& attempt) {
  if (!attempt.reconsidered) return attempt.reconsidered = locked<reconsider_victims>(attempt);
  return false;
}

bool offload_irreplaceable_value(Attempt& attempt) {
  return offload_irreplaceable(attempt.meter);
}

bool offload_gradient(Attempt& attempt) {
  OffloadedGradients* const gradients = OffloadedGradients::of_this_thread();
  return gradients && gradients->put_largest(attempt.meter);
}

bool release_fetched_copies(const Arbiter&, const Meter&) {
  return ValueTiers::of_process().give_up_fetched();
}

bool release_all_origins(const Arbiter& lock, const Meter& meter) {
  return release_origins(lock, meter, 1);
}

// What backward can do without, or can have again for little.
constexpr Step cheap_steps[] = {
    {"finish puts", finish_puts},
    {"release large origins", locked<release_large_origins>},
    {"evict the cheapest value", locked<evict_cheapest>},
    {"reconsider skipped values", reconsider_skipped_values},
    {"offload an irreplaceable value", offload_irreplaceable_value},
    {"offload a gradient", offload_gradient},
};
// What is hard to recompute goes only if the reserve is not enough, and no more of it than has to.
constexpr Step last_resorts[] = {
    {"release fetched copies", locked<release_fetched_copies>},
    {"evict the largest value", locked<evict_largest>},
    {"drop the largest packed copy", locked<drop_packed_copy>},
    {"release all origins", locked<release_all_origins>},
};

bool any_of(std::span<const Step> steps, Attempt& attempt) {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.free_some(attempt); });
}

bool evict_until_it_fits(const Meter& meter, Bytes wanted) {
  Attempt attempt{meter};
  while (meter.live() + wanted > meter.ceiling()) {
    if (any_of(cheap_steps, attempt)) continue;
    if (meter.live() + wanted <= meter.limit()) return false;
    if (any_of(last_resorts, attempt)) continue;
    const Arbiter lock;
    if (meter.live() + wanted > meter.limit()) throw_budget_error(lock, meter, wanted);
  }
  return true;
}

}  // namespace

bool make_room(Meter& meter, Bytes wanted) {
  Arbiter::expect_free("room is made for an allocation");  // what is evicted is freed when the lock is free
  return through_error_door([&] { return evict_until_it_fits(meter, wanted); });
}

std::vector<std::string_view> steps_of_pressure() {
  std::vector<std::string_view> names;
  for (const Step& step : cheap_steps) names.push_back(step.name);
  names.emplace_back("use the reserve");
  for (const Step& step : last_resorts) names.push_back(step.name);
  return names;
}

}  // namespace reprise::internal
