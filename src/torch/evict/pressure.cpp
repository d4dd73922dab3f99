#include "torch/evict/pressure.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "reprise/torch/errors.h"
#include "torch/evict/device_fingerprints.h"
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
  const std::string name((r.pass() ? r.pass()->seen : r.journal().seen()).event_name(event));
  return name.empty() ? "" : "moment " + std::to_string(event) + " '" + name + "'";
}

[[noreturn]] void throw_budget_error(Meter& meter, Bytes wanted) {
  BudgetError::Facts facts;
  facts.device = meter.device();
  facts.budget = meter.limit();
  facts.live = meter.live();
  facts.requested = wanted;
  std::map<std::string, Bytes> pinned;
  Bytes known = 0;
  for (Recording* const r : Recordings::of_process().all()) {
    const DeviceOrdinal device = r->context().device_of(meter);
    if (device == untracked) continue;
    const Values& values = r->values();
    for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
      if (values.device(v) != device) continue;
      c10::Storage storage = values.storage_even_if_evicted(v);
      if (!storage) continue;
      const auto holders = storage.use_count();
      Arbiter::discard(std::move(storage));
      const Id maker = r->cursor().info(v).maker;
      if (values.kept(v) && values.recomputable(v) && r->cursor().choice_of(v) == Choice::keep) {
        facts.kept_by_policy += values.bytes(v);
      }
      // Of what came from outside, only what nobody else holds is there because of us.
      if (maker == no_operator && holders > (values.kept(v) ? 2 : 1)) continue;
      pinned[maker == no_operator ? std::string("tensors from outside that recipes need")
                                  : "results of " + r->cursor().recipes().operators[maker].info->name + " in use"] +=
          values.bytes(v);
      known += values.bytes(v);
    }
    if (r->context().accelerator()) facts.cpu_alone = false;
    const SmallestBudget smallest =
        device == 0 ? r->context().smallest() : SmallestBudget{};  // plans are for the first
    if (smallest.feasible) facts.smallest_feasible = smallest.feasible;
    if (smallest.floor) {
      facts.floor = smallest.floor;
      facts.floor_set_by = smallest.floor_set_by;
    }
    if (facts.where.empty()) facts.where = under_way(*r);
  }
  pinned["parameters, gradients and other bytes"] += facts.live - known;
  for (const auto& [what, bytes] : pinned) facts.pinned.push_back({what, bytes});
  std::stable_sort(facts.pinned.begin(), facts.pinned.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (const BudgetAdvice* const advice = budget_advice()) {
    facts.advice = facts.device == "cpu" && facts.cpu_alone ? advice->on_cpu : advice->elsewhere;
  }
  throw BudgetError(std::move(facts));
}

// Under the arbiter's lock. False: there is nothing.
bool evict_something(const Meter& meter, bool& reconsidered) {
  if (evict_a_victim(meter)) return true;
  if (reconsidered) return false;
  reconsidered = reconsider_victims(meter);
  return reconsidered;
}

bool put_a_gradient_below(const Meter& meter) {
  OffloadedGradients* const gradients = OffloadedGradients::of_this_thread();
  return gradients && gradients->put_largest(meter);
}

// What is hard to recompute goes only if the reserve is not enough, and no more of it than has to.
bool evict_until_it_fits(Meter& meter, Bytes wanted) {
  bool reconsidered = false;
  while (meter.live() + wanted > meter.ceiling()) {
    if (ValueTiers::of_process().settle_next()) continue;
    bool evicted = false;
    {
      const Arbiter lock;
      evicted = give_up_origins(meter, 8) || evict_something(meter, reconsidered);
    }
    if (!evicted && !put_away_what_cannot_be_recomputed(meter) && !put_a_gradient_below(meter)) {
      const Arbiter lock;
      if (meter.live() + wanted <= meter.limit()) return false;  // into the reserve
      if (!ValueTiers::of_process().give_up_fetched() && !evict_the_largest(meter) && !drop_a_packed_copy(meter) &&
          !give_up_origins(meter, 1)) {
        throw_budget_error(meter, wanted);
      }
    }
    read_fingerprints(meter);
  }
  return true;
}

}  // namespace

bool make_room(Meter& meter, Bytes wanted) {
  Arbiter::expect_free("room is made for an allocation");  // what is evicted is freed when the lock is free
  return through_error_door([&] { return evict_until_it_fits(meter, wanted); });
}

}  // namespace reprise::internal
