#include "torch/evict/victims.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "torch/evict/recompute_cost.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/values/recording.h"
#include "torch/values/recordings.h"

namespace reprise::internal {
namespace {

constexpr double least_age = 50;  // microseconds of the pass: what was saved just now is no older

double cost_by_tier(const Recording& r, Id value, const TierCosts& tier) {
  const Bytes bytes = r.values().bytes(value);
  return tier.get_alone(bytes) + (r.values().copies(value).below() ? 0 : tier.put_alone(bytes));
}

// What plans did counts beside cost and age, and not instead of them: they knew what came in their steps, not in this.
double weight_of(EvictionPriority turn) {
  constexpr double weights[] = {1.0 / 4, 1.0 / 2, 1, 2, 4};
  return weights[static_cast<int>(turn)];
}

struct Victim {
  Recording* recording = nullptr;
  Id value = no_value;
  double score = never;
  bool below = false;  // it goes to the tier
};

void look_in(Recording& r, DeviceOrdinal device, Victim& best) {
  Values& values = r.values();
  const HardToRecompute is_hard_to_recompute(r, device);
  const std::optional<TierCosts> tier = r.context().tiers(device).below;
  const auto tier_takes = [&](Id value) { return tier && tier->takes(values.bytes(value)); };
  const auto is_busy = [&](Id value) { return values.kept(value) && values.kept(value).use_count() > 1; };
  const auto usable = [&](Id value) {
    if (!values.kept(value) || !values.recomputable(value)) return VictimQueue::Answer::drop;
    if (is_busy(value)) return VictimQueue::Answer::busy;
    const bool comes_back = r.form_of(value) || tier_takes(value) || !is_hard_to_recompute(value);
    return comes_back ? VictimQueue::Answer::take : VictimQueue::Answer::skip;
  };
  VictimQueue& queue = values.victims(device);
  queue.look_after_busy(is_busy);
  for (int c = 0; c < VictimQueue::classes;) {
    const Id value = queue.first(c, usable);
    if (value == no_value) {
      ++c;
      continue;
    }
    const auto bytes = static_cast<double>(values.bytes(value));
    const double age = std::max(least_age, std::abs(static_cast<double>(r.journal().now()) - values.saved_at(value)));
    const double by_cost = weight_of(VictimQueue::priority_of(c)) / (bytes * age);
    const double enough = std::max(best.score / by_cost, VictimQueue::most_in(c, values.bytes(value)));
    double cost = is_hard_to_recompute(value) ? never : cost_of_return(r, value, tier, enough);
    if (r.form_of(value)) cost = std::min(cost, (pack_cost + unpack_cost) * bytes);
    const double by_tier = tier_takes(value) ? cost_by_tier(r, value, *tier) : never;
    cost = std::min(cost, by_tier);
    if (queue.move_first(c, cost, values.bytes(value))) continue;
    const double score = cost * by_cost;
    if (score < best.score) best = {&r, value, score, by_tier == cost};
    ++c;
  }
}

bool evict(const Victim& victim) {
  if (victim.value == no_value) return false;
  Values& values = victim.recording->values();
  if (victim.below) {
    (void)values.put_below(victim.value);
  } else if (const auto form = victim.recording->form_of(victim.value)) {
    (void)values.pack(victim.value, *form);
  }
  values.evict(victim.value);
  return true;
}

}  // namespace

bool evict_cheapest(const Arbiter&, const Meter& meter) {
  Victim best;
  for (Recording* const r : Recordings::of_process().all()) {
    const DeviceOrdinal device = r->context().device_of(meter);
    if (device != untracked && r->values().may_evict()) look_in(*r, device, best);
  }
  return evict(best);
}

bool release_origins(const Arbiter&, const Meter& meter, Bytes factor) {
  bool any = false;
  for (Recording* const r : Recordings::of_process().all()) {
    const DeviceOrdinal device = r->context().device_of(meter);
    if (device != untracked) any |= r->values().give_up_origins(device, factor);
  }
  return any;
}

bool evict_largest(const Arbiter&, const Meter& meter) {
  Victim largest;
  Bytes bytes = 0;
  for (Recording* const r : Recordings::of_process().all()) {
    const Values& values = r->values();
    const DeviceOrdinal device = r->context().device_of(meter);
    if (device == untracked || !values.may_evict()) continue;
    for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
      if (values.device(v) != device || !values.kept(v) || values.bytes(v) <= bytes || !values.recomputable(v))
        continue;
      if (values.kept(v).use_count() > 1 || r->cursor().choice_of(v) == Choice::keep) continue;
      const std::optional<TierCosts> tier = r->context().tiers(device).below;
      largest = {r, v, 0, tier && tier->takes(values.bytes(v))};
      bytes = values.bytes(v);
    }
  }
  return evict(largest);
}

bool drop_packed_copy(const Arbiter&, const Meter& meter) {
  if (&meter != &meter::cpu()) return false;
  Recording* of = nullptr;
  Id largest = no_value;
  Bytes bytes = 0;
  for (Recording* const r : Recordings::of_process().all()) {
    const Values& values = r->values();
    if (!values.may_evict()) continue;
    for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
      const auto& packed = values.copies(v).packed();
      if (!packed || packed.use_count() > 1 || packed->bytes() <= bytes || !values.recomputable(v)) continue;
      of = r;
      largest = v;
      bytes = packed->bytes();
    }
  }
  if (!of) return false;
  of->values().copies(largest).drop_packed();
  return true;
}

bool offload_irreplaceable(const Meter& meter) {
  Recording* found = nullptr;
  std::shared_ptr<Recording> of;
  Id largest = no_value;
  std::shared_ptr<const TierCopy> copy;
  {
    Arbiter lock;
    for (Recording* const r : Recordings::of_process().all()) {
      const DeviceOrdinal device = r->context().device_of(meter);
      const auto tier = device == untracked ? std::nullopt : r->context().tiers(device).below;
      if (!tier || r->weak_from_this().expired()) continue;
      for (Id v = 0; v < static_cast<Id>(r->values().size()); ++v) {
        if (r->values().device(v) != device || !r->values().may_put_away(v) || !tier->takes(r->values().bytes(v)))
          continue;
        if (found && found->values().bytes(largest) >= r->values().bytes(v)) continue;
        found = r;
        largest = v;
      }
    }
    if (found) of = found->weak_from_this().lock();
    if (!of) return false;
    copy = of->values().put_below(largest);
    lock.unlock();
  }
  if (copy) copy->finish_put();
  const Arbiter lock;
  // In between, other threads may have released or renumbered the value.
  Values& values = of->values();
  const bool is_same = static_cast<std::size_t>(largest) < values.size() && values.copies(largest).below() == copy;
  if (copy && copy->usable() && is_same) values.put_away(largest);
  Arbiter::discard_all(std::move(of));
  return true;
}

bool reconsider_victims(const Arbiter&, const Meter& meter) {
  bool any = false;
  for (Recording* const r : Recordings::of_process().all()) {
    const DeviceOrdinal device = r->context().device_of(meter);
    if (device == untracked) continue;
    any |= r->values().release_outlasting();
    any |= r->values().victims(device).reconsider();
  }
  return any;
}

}  // namespace reprise::internal
