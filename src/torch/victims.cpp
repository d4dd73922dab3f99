#include "torch/victims.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "torch/arbiter.h"
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
double cost_of_return(const Recording& r, Id value, const std::optional<DiskTerms>& disk, double enough) {
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
    if (disk && values.on_disk(v)) {
      cost += disk->get_cost(values.bytes(v));
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

double cost_by_disk(const Recording& r, Id value, const DiskTerms& disk) {
  const Bytes bytes = r.values().bytes(value);
  return disk.get_cost(bytes) + (r.values().on_disk(value) ? 0 : disk.put_cost(bytes));
}

// Plans knew what comes, so what they did counts for more than age and cost, which differ by less.
double weight_of(Turn turn) {
  constexpr double weights[] = {1.0 / 64, 1.0 / 8, 1, 8, 64};
  return weights[static_cast<int>(turn)];
}

struct Victim {
  Recording* recording = nullptr;
  Id value = no_value;
  double score = never;
  bool to_disk = false;
};

void look_in(Recording& r, Victim& best) {
  Values& values = r.values();
  const auto usable = [&](Id value) {
    if (!values.kept(value) || !values.rebuildable(value)) return VictimQueue::Answer::drop;
    return values.kept(value).use_count() == 1 ? VictimQueue::Answer::take : VictimQueue::Answer::skip;
  };
  const std::optional<DiskTerms> disk = r.rules().tiers().disk;
  for (int c = 0; c < VictimQueue::classes; ++c) {
    const Id value = values.victims().first(c, usable);
    if (value == no_value) continue;
    const auto bytes = static_cast<double>(values.bytes(value));
    const double age = std::max(50.0, std::abs(static_cast<double>(r.journal().now()) - values.saved_at(value)));
    const double by_cost = weight_of(VictimQueue::turn_of(c)) / (bytes * age);
    double cost = cost_of_return(r, value, disk, best.score / by_cost);
    if (r.form_of(value)) cost = std::min(cost, (pack_cost + unpack_cost) * bytes);
    const double by_disk = disk && disk->takes(values.bytes(value)) ? cost_by_disk(r, value, *disk) : never;
    cost = std::min(cost, by_disk);
    const double score = cost * by_cost;
    if (score < best.score) best = {&r, value, score, by_disk == cost};
  }
}

}  // namespace

bool forget_a_victim() {
  Victim best;
  for (Recording* const r : process().recordings().all()) {
    if (r->values().may_forget()) look_in(*r, best);
  }
  if (best.value == no_value) return false;
  Values& values = best.recording->values();
  if (best.to_disk) {
    (void)values.put_on_disk(best.value);
  } else if (const auto form = best.recording->form_of(best.value)) {
    (void)values.pack(best.value, *form);
  }
  values.forget(best.value);
  return true;
}

bool drop_a_packed_copy() {
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

bool put_away_what_cannot_be_rebuilt() {
  std::shared_ptr<Recording> of;
  Id largest = no_value;
  std::shared_ptr<const DiskCopy> copy;
  {
    const Arbiter lock;
    for (Recording* const r : process().recordings().all()) {
      const std::optional<DiskTerms> disk = r->rules().tiers().disk;
      if (!disk) continue;
      for (Id v = 0; v < static_cast<Id>(r->values().size()); ++v) {
        if (!r->values().may_put_away(v) || !disk->takes(r->values().bytes(v))) continue;
        if (largest != no_value && of->values().bytes(largest) >= r->values().bytes(v)) continue;
        of = r->shared_from_this();
        largest = v;
      }
    }
    if (largest == no_value) return false;
    copy = of->values().put_on_disk(largest);
  }
  if (copy) copy->finish_writing();
  (void)of->rules().disk()->settle();
  const Arbiter lock;
  if (copy && copy->usable()) of->values().put_away(largest);
  Arbiter::discard_all(std::move(of));
  return true;
}

bool reconsider_victims() {
  bool any = false;
  for (Recording* const r : process().recordings().all()) {
    any |= r->values().release_outlasting();
    any |= r->values().victims().has_busy();
    r->values().victims().reconsider();
  }
  return any;
}

}  // namespace reprise::internal
