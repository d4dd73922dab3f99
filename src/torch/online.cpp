#include "torch/online.h"

#include <algorithm>
#include <map>

#include "torch/meter.h"
#include "torch/of_thread.h"
#include "torch/saved.h"
#include "torch/session_state.h"

namespace reprise::internal {
namespace {

constexpr double packing_cost_per_byte = 1e-4;  // microseconds
constexpr double never = 1e30;
constexpr int longest_walk = 400;  // operators looked at for one score

// What it would cost to have the value back: everything on the way to what is resident. Its own scratch memory: it may
// be called in the middle of a replay.
double cost_of_return(const Recording& r, Id value) {
  struct Scratch {
    std::vector<std::uint32_t> seen;
    std::uint32_t stamp = 0;
    std::vector<Id> open;
  };
  auto& [seen, stamp, open] = of_thread<Scratch>();
  if (seen.size() < r.recipes->operators.size()) seen.resize(r.recipes->operators.size(), 0);
  if (++stamp == 0) {
    std::fill(seen.begin(), seen.end(), 0);
    stamp = 1;
  }
  double cost = 0;
  int walked = 0;
  open.assign(1, value);
  while (!open.empty()) {
    const Id v = open.back();
    open.pop_back();
    if (v != value && r.resident(v)) continue;
    const LiveValue& state = r.live[v];
    if (state.packed) {
      cost += packing_cost_per_byte * static_cast<double>(r.info(v).bytes);
      continue;
    }
    if (!r.rebuildable(v)) return never;
    const Id op = r.info(v).maker;
    if (seen[op] == stamp) continue;
    seen[op] = stamp;
    cost += r.cost_of(op) + 2;
    if (++walked > longest_walk) return cost * 2;
    for (const Reference& reference : r.recipes->references_of(op)) {
      if (reference.value != no_value && reference.value != value) open.push_back(reference.value);
    }
  }
  return cost;
}

std::optional<PackedForm> form_of(const Recording& r, Id value) {
  const auto& forms = r.following && r.period ? r.period->seen.forms : r.seen.forms;
  if (!r.session->options.pack || static_cast<std::size_t>(value) >= forms.size()) return std::nullopt;
  return forms[value];
}

struct Victim {
  Recording* recording = nullptr;
  Id value = no_value;
  double score = never;
};

void look_in(Recording& r, Victim& best) {
  const auto usable = [&](Id value) {
    const LiveValue& state = r.live[value];
    if (!state.kept || !r.rebuildable(value)) return VictimQueue::Answer::drop;
    return state.kept.use_count() == 1 ? VictimQueue::Answer::take : VictimQueue::Answer::skip;
  };
  for (int c = 0; c < VictimQueue::classes; ++c) {
    const Id value = r.victims.first(c, usable);
    if (value == no_value) continue;
    const Bytes bytes = r.info(value).bytes;
    double cost = cost_of_return(r, value);
    if (form_of(r, value)) cost = std::min(cost, 2 * packing_cost_per_byte * static_cast<double>(bytes));
    const double age = std::max(50.0, std::abs(static_cast<double>(r.now) - r.live[value].saved_at));
    const double score = cost / (static_cast<double>(bytes) * age);
    if (score < best.score) best = {&r, value, score};
  }
}

bool forget_one() {
  Victim best;
  for (Recording* const r : recordings()) {
    if (r->keep_outside) look_in(*r, best);
  }
  if (best.value == no_value) return false;
  if (const auto form = form_of(*best.recording, best.value); form && !best.recording->live[best.value].packed) {
    (void)best.recording->pack(best.value, *form);
  }
  best.recording->forget(best.value);
  return true;
}

bool reconsider_those_in_use() {
  bool any = false;
  for (Recording* const r : recordings()) {
    any |= r->victims.has_busy();
    r->victims.reconsider();
  }
  return any;
}

[[noreturn]] void throw_budget_error(Bytes wanted) {
  BudgetError::Facts facts;
  facts.budget = meter::limit();
  facts.live = meter::live();
  facts.requested = wanted;
  std::map<std::string, Bytes> pinned;
  Bytes known = 0;
  for (Recording* const r : recordings()) {
    for (Id v = 0; v < static_cast<Id>(r->live.size()); ++v) {
      c10::Storage storage = r->anywhere(v);
      if (!storage) continue;
      const auto holders = storage.use_count();
      Arbiter::discard(std::move(storage));
      const Id maker = r->info(v).maker;
      if (r->live[v].kept && r->rebuildable(v) && r->choice_of(v) == Choice::keep)
        facts.kept_by_policy += r->info(v).bytes;
      // Of what came from outside, only what nobody else holds is there because of us.
      if (maker == no_operator && holders > (r->live[v].kept ? 2 : 1)) continue;
      pinned[maker == no_operator ? std::string("tensors from outside that recipes need")
                                  : "results of " + r->recipes->operators[maker].info->name + " in use"] +=
          r->info(v).bytes;
      known += r->info(v).bytes;
    }
    if (const auto smallest = r->session->smallest_feasible()) facts.smallest_feasible = smallest;
  }
  facts.pinned.push_back({"parameters, gradients and other bytes", facts.live - known});
  for (const auto& [what, bytes] : pinned) facts.pinned.push_back({what, bytes});
  std::stable_sort(facts.pinned.begin(), facts.pinned.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (facts.pinned.size() > 5) facts.pinned.resize(5);
  throw BudgetError(std::move(facts));
}

}  // namespace

bool make_room(Bytes wanted) {
  Arbiter::expect_free("room is made for an allocation");  // what is forgotten is freed when the lock is free
  bool reconsidered = false;
  while (meter::live() + wanted > meter::ceiling()) {
    const Arbiter lock;
    if (forget_one()) continue;
    if (!reconsidered && reconsider_those_in_use()) {
      reconsidered = true;
      continue;
    }
    if (meter::live() + wanted <= meter::limit()) return false;  // into the reserve
    throw_budget_error(wanted);
  }
  return true;
}

}  // namespace reprise::internal
