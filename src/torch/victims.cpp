#include "torch/victims.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "torch/arbiter.h"
#include "torch/meter.h"
#include "torch/of_thread.h"
#include "torch/process.h"
#include "torch/recording.h"
#include "torch/recordings.h"

namespace reprise::internal {
namespace {

constexpr double never = 1e30;
constexpr int longest_walk = 400;  // operators looked at for one score

// What it would cost to have the value back: everything on the way to what is resident; or something above `enough`, if
// it is more than that. Its own scratch memory: it may be called in the middle of a replay.
double cost_of_return(const Recording& r, Id value, const std::optional<TierTerms>& tier, double enough) {
  const Recipes& recipes = r.course().recipes();
  const Values& values = r.values();
  struct Scratch {
    std::vector<std::uint32_t> seen;
    std::uint32_t stamp = 0;
    std::vector<Id> open;
  };
  auto& [seen, stamp, open] = of_thread<Scratch>();
  if (seen.size() < recipes.operators.size()) seen.resize(recipes.operators.size(), 0);
  if (++stamp == 0) {
    std::fill(seen.begin(), seen.end(), 0);
    stamp = 1;
  }
  double cost = 0;
  int walked = 0;
  open.assign(1, value);
  while (!open.empty() && cost <= enough) {
    const Id v = open.back();
    open.pop_back();
    if (v != value && values.resident(v)) continue;
    if (values.packed(v)) {
      cost += unpack_cost * static_cast<double>(values.bytes(v));
      continue;
    }
    if (tier && values.below(v)) {
      cost += tier->get_alone(values.bytes(v));
      continue;
    }
    if (!values.rebuildable(v)) return never;
    const Id op = r.course().info(v).maker;
    if (seen[op] == stamp) continue;
    seen[op] = stamp;
    cost += r.journal().cost_of(op) + 2;
    if (++walked > longest_walk) return cost * 2;
    for (const Reference& reference : recipes.references_of(op)) {
      if (reference.value != no_value && reference.value != value) open.push_back(reference.value);
    }
  }
  return cost;
}

double cost_by_tier(const Recording& r, Id value, const TierTerms& tier) {
  const Bytes bytes = r.values().bytes(value);
  return tier.get_alone(bytes) + (r.values().below(value) ? 0 : tier.put_alone(bytes));
}

// Plans knew what comes, so what they did counts for more than age and cost, which differ by less.
double weight_of(Turn turn) {
  constexpr double weights[] = {1.0 / 64, 1.0 / 8, 1, 8, 64};
  return weights[static_cast<int>(turn)];
}

// At a place, of what it needs and makes.
Bytes bytes_of_operator(const Recording& r, Id op, PlaceIndex place) {
  const Recipes& recipes = r.course().recipes();
  Bytes bytes = 0;
  Id before = no_value;
  for (const Reference& reference : recipes.references_of(op)) {
    const Id value = reference.value;
    if (value != no_value && value != before && r.values().rebuildable(value)) {
      bytes += r.values().bytes_at(place, value);
    }
    before = value;
  }
  for (const Output& output : recipes.outputs_of(op)) {
    bytes += output.write < 0 ? r.values().bytes_at(place, output.value) : 0;
  }
  return bytes;
}

// Of those that have run. What was counted before is remembered.
Bytes largest_operator(const Recording& r, PlaceIndex place) {
  struct Largest {
    const Recipes* of = nullptr;
    std::size_t counted = 0;
    Bytes bytes = 0;
  };
  const Recipes& recipes = r.course().recipes();
  auto& by_place = of_thread<std::vector<Largest>>();
  if (by_place.size() <= place) by_place.resize(std::size_t{place} + 1);
  Largest& largest = by_place[place];
  if (largest.of != &recipes || largest.counted > recipes.operators.size()) largest = {&recipes};
  for (; largest.counted + 1 < recipes.operators.size(); ++largest.counted) {
    largest.bytes = std::max(largest.bytes, bytes_of_operator(r, static_cast<Id>(largest.counted), place));
  }
  return largest.bytes;
}

// Half of what the budget leaves beside the other bytes.
Bytes room_at(const Meter& meter) {
  return (meter.limit() - meter.other()) / 2;
}

// Whether the value may not come back where it is needed: gradients may take as much as an operator on the way to it,
// and what is left of the budget beside the other bytes has to hold both. Larger values on the way, which are forgotten
// before it, do not count as resident.
class HardToRebuild {
 public:
  HardToRebuild(const Recording& r, PlaceIndex place)
      : r_(r),
        place_(place),
        room_(room_at(r.rules().places()[place].place->meter())),
        any_(largest_operator(r, place) > room_) {}

  [[nodiscard]] bool operator()(Id value) const {
    if (!any_) return false;
    const Values& values = r_.values();
    std::vector<Id> open{value};
    std::vector<bool> seen(r_.course().recipes().operators.size());
    for (int walked = 0; !open.empty() && walked < longest_walk; ++walked) {
      const Id v = open.back();
      open.pop_back();
      const bool stays = values.packed(v) || (values.bytes(v) <= values.bytes(value) && values.resident(v));
      if ((v != value && stays) || !values.rebuildable(v)) continue;
      const Id op = r_.course().info(v).maker;
      if (seen[op]) continue;
      seen[op] = true;
      if (bytes_of_operator(r_, op, place_) > room_) return true;
      for (const Reference& reference : r_.course().recipes().references_of(op)) {
        if (reference.value != no_value) open.push_back(reference.value);
      }
    }
    return false;
  }

 private:
  const Recording& r_;
  const PlaceIndex place_;
  const Bytes room_;
  const bool any_;  // operator is so large at all
};

struct Victim {
  Recording* recording = nullptr;
  Id value = no_value;
  double score = never;
  bool below = false;  // it goes to the tier
};

void look_in(Recording& r, PlaceIndex place, Victim& best) {
  Values& values = r.values();
  const HardToRebuild is_hard_to_rebuild(r, place);
  const std::optional<TierTerms> tier = r.rules().tiers(place).below;
  const auto tier_takes = [&](Id value) { return tier && tier->takes(values.bytes(value)); };
  const auto usable = [&](Id value) {
    if (!values.kept(value) || !values.rebuildable(value)) return VictimQueue::Answer::drop;
    if (values.kept(value).use_count() > 1) return VictimQueue::Answer::skip;
    const bool comes_back = r.form_of(value) || tier_takes(value) || !is_hard_to_rebuild(value);
    return comes_back ? VictimQueue::Answer::take : VictimQueue::Answer::skip;
  };
  for (int c = 0; c < VictimQueue::classes; ++c) {
    const Id value = values.victims(place).first(c, usable);
    if (value == no_value) continue;
    const auto bytes = static_cast<double>(values.bytes(value));
    const double age = std::max(50.0, std::abs(static_cast<double>(r.journal().now()) - values.saved_at(value)));
    const double by_cost = weight_of(VictimQueue::turn_of(c)) / (bytes * age);
    double cost = is_hard_to_rebuild(value) ? never : cost_of_return(r, value, tier, best.score / by_cost);
    if (r.form_of(value)) cost = std::min(cost, (pack_cost + unpack_cost) * bytes);
    const double by_tier = tier_takes(value) ? cost_by_tier(r, value, *tier) : never;
    cost = std::min(cost, by_tier);
    const double score = cost * by_cost;
    if (score < best.score) best = {&r, value, score, by_tier == cost};
  }
}

bool forget(const Victim& victim) {
  if (victim.value == no_value) return false;
  Values& values = victim.recording->values();
  if (victim.below) {
    (void)values.put_below(victim.value);
  } else if (const auto form = victim.recording->form_of(victim.value)) {
    (void)values.pack(victim.value, *form);
  }
  values.forget(victim.value);
  return true;
}

}  // namespace

bool forget_a_victim(const Meter& meter) {
  Victim best;
  for (Recording* const r : process().recordings().all()) {
    const PlaceIndex place = r->rules().place_of(meter);
    if (place != nowhere && r->values().may_forget()) look_in(*r, place, best);
  }
  return forget(best);
}

bool forget_the_largest(const Meter& meter) {
  Victim largest;
  Bytes bytes = 0;
  for (Recording* const r : process().recordings().all()) {
    const Values& values = r->values();
    const PlaceIndex place = r->rules().place_of(meter);
    if (place == nowhere || !values.may_forget()) continue;
    for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
      if (values.place(v) != place || !values.kept(v) || values.bytes(v) <= bytes || !values.rebuildable(v)) continue;
      if (values.kept(v).use_count() > 1 || r->course().choice_of(v) == Choice::keep) continue;
      const std::optional<TierTerms> tier = r->rules().tiers(place).below;
      largest = {r, v, 0, tier && tier->takes(values.bytes(v))};
      bytes = values.bytes(v);
    }
  }
  return forget(largest);
}

bool drop_a_packed_copy(const Meter& meter) {
  if (&meter != &meter::cpu()) return false;
  Recording* of = nullptr;
  Id largest = no_value;
  Bytes bytes = 0;
  for (Recording* const r : process().recordings().all()) {
    const Values& values = r->values();
    if (!values.may_forget()) continue;
    for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
      const auto& packed = values.packed(v);
      if (!packed || packed.use_count() > 1 || packed->bytes() <= bytes || !values.rebuildable(v)) continue;
      of = r;
      largest = v;
      bytes = packed->bytes();
    }
  }
  if (!of) return false;
  of->values().drop_packed(largest);
  return true;
}

bool put_away_what_cannot_be_rebuilt(const Meter& meter) {
  std::shared_ptr<Recording> of;
  Id largest = no_value;
  std::shared_ptr<const TierCopy> copy;
  {
    const Arbiter lock;
    for (Recording* const r : process().recordings().all()) {
      const PlaceIndex place = r->rules().place_of(meter);
      const auto tier = place == nowhere ? std::nullopt : r->rules().tiers(place).below;
      if (!tier) continue;
      for (Id v = 0; v < static_cast<Id>(r->values().size()); ++v) {
        if (r->values().place(v) != place || !r->values().may_put_away(v) || !tier->takes(r->values().bytes(v)))
          continue;
        if (largest != no_value && of->values().bytes(largest) >= r->values().bytes(v)) continue;
        of = r->shared_from_this();
        largest = v;
      }
    }
    if (largest == no_value) return false;
    copy = of->values().put_below(largest);
  }
  if (copy) copy->finish_put();
  of->rules().settle_tiers();
  const Arbiter lock;
  if (copy && copy->usable()) of->values().put_away(largest);
  Arbiter::discard_all(std::move(of));
  return true;
}

bool reconsider_victims(const Meter& meter) {
  bool any = false;
  for (Recording* const r : process().recordings().all()) {
    const PlaceIndex place = r->rules().place_of(meter);
    if (place == nowhere) continue;
    any |= r->values().release_outlasting();
    any |= r->values().victims(place).has_busy();
    r->values().victims(place).reconsider();
  }
  return any;
}

}  // namespace reprise::internal
