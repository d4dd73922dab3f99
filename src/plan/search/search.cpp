#include "plan/search/search.h"

#include <algorithm>
#include <cmath>

namespace reprise::internal {
namespace {

constexpr double penalty_for_each = 0.02;  // occurrence above the budget, beside the bytes it is above
constexpr int deepest_pull = 200;

// How often a move is of which kind, and how often it takes the less likely way: probabilities, found by trials on
// recorded steps and on the graphs of others. Results depend little on any one of them.
struct Mix {
  // move(): what to begin with
  double overflow = 0.45;  // where the timetable does not fit
  double drop = 0.35;
  double shift = 0.15, swap = 0.3;  // of the moves that begin with a repeat; the rest removes it
  double with_ancestors = 0.9;      // what only served the removed repeat goes with it
  double repaired = 0.1;            // a drop that is followed by a repair in the same move
  // drop_across(): where the value is recomputed
  double early = 0.3;        // before it is used
  double near_input = 0.6;   // of these: where an input is still there, not anywhere in the gap
  double after_input = 0.5;  // of these: right after its last use, not right before
  // pull(): what is pulled in with a repeat
  double pull_over = 0.7;   // an input that would have to stay across an occurrence above the budget
  double pull_free = 0.15;  // an input that has room to stay
  // place_of_put(): when the copy is taken
  double put_later = 0.2;
  double put_earlier = 0.3;  // of the rest
  // shift(): where to
  double to_use = 0.25;     // right before its first use
  double few_steps = 0.35;  // a few steps from where it is; else anywhere in the gap
  double back = 0.5;
};
constexpr Mix mix;

// Costs are shares of the plain cost; of the most expensive node, if a put or get costs more than everything else.
double scale_of(const Problem& problem) {
  double largest = problem.plain_cost;
  for (const double cost : problem.cost) largest = std::max(largest, cost);
  return largest > 0 ? 1 / largest : 1;
}

}  // namespace

Search::Search(const Problem& problem, std::uint64_t seed, Effort& effort)
    : problem_(problem),
      timetable_(problem),
      random_(seed),
      effort_(effort),
      cost_scale_(scale_of(problem)),
      bytes_scale_(1 / std::max(1.0, static_cast<double>(problem.budget))) {
  note_peak();
}

double Search::energy() const {
  return timetable_.cost() * cost_scale_ +
         penalty_ * (timetable_.over_bytes() * bytes_scale_ + penalty_for_each * timetable_.over_count());
}

void Search::note() {
  if (!timetable_.fits() || timetable_.cost() >= best_cost_) return;
  best_cost_ = timetable_.cost();
  best_ = timetable_.nodes();
  if (on_improvement) on_improvement(best_cost_);
}

void Search::note_peak() {
  if (timetable_.peak() >= lowest_peak_) return;
  lowest_peak_ = timetable_.peak();
  lowest_ = timetable_.nodes();
}

bool Search::offer(const std::vector<Id>& nodes) {
  if (!timetable_.load(nodes)) return false;
  if (!timetable_.fits()) {
    note_peak();
    return false;
  }
  note();
  return true;
}

double Search::unit_of(const std::vector<Id>& nodes) const {
  double cost = 0;
  for (const Id n : nodes) cost += problem_.cost[n];
  const auto repeats = static_cast<double>(nodes.size()) - problem_.moments;
  const double extra = cost - problem_.plain_cost;
  return repeats > 0 && extra > 0 ? extra * cost_scale_ / repeats : 1.0 / std::max<Id>(1, problem_.moments);
}

// ---- pruning -------------------------------------------------------------------------------------------------------

std::vector<Id> Search::prune(const std::vector<Id>& nodes) {
  if (!timetable_.load(nodes)) return nodes;
  bool again = timetable_.fits();
  while (again && effort_.spent() < 1) {
    again = false;
    std::vector<Occurrence> order = timetable_.repeats();
    std::stable_sort(order.begin(), order.end(), [&](Occurrence a, Occurrence b) {
      return problem_.cost[timetable_.node_of(a)] > problem_.cost[timetable_.node_of(b)];
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Occurrence repeat = order[i];
      if (i % 64 == 63 && effort_.spent() >= 1) break;
      if (!timetable_.is_alive(repeat) || !timetable_.is_repeat(repeat)) continue;
      const double before = timetable_.cost();
      if (remove_with_ancestors(repeat) && timetable_.fits()) {
        again = again || timetable_.cost() < before;
        timetable_.keep_changes();
      } else {
        timetable_.undo_changes();
      }
    }
  }
  note();
  return timetable_.nodes();
}

// ---- annealing -----------------------------------------------------------------------------------------------------

void Search::anneal(const std::vector<Id>& start, double until_share, double hot, double cold, Until until) {
  if (!timetable_.load(start)) return;
  note();
  const double from_share = effort_.spent();
  double temperature = hot, now = energy();
  int window = 0, fitting = 0, without_fit = 0;
  for (std::uint64_t i = 0;; ++i) {
    if (i % 32 == 0) {
      const double spent = effort_.spent();
      if (spent >= until_share || proven() || (until == Until::fits && has_best())) return;
      temperature = hot * std::pow(cold / hot, (spent - from_share) / (until_share - from_share));
      if (i % 4096 == 0) {
        if (!has_best()) note_peak();
        if (on_tick) on_tick();
      }
    }
    effort_.count_move();
    timetable_.begin_batch();
    const bool possible = move();
    const double then = possible ? energy() : now;
    if (possible && (then <= now || random_.unit() < std::exp((now - then) / temperature))) {
      now = then;
      timetable_.keep_changes();
      note();
    } else {
      timetable_.undo_changes();
    }
    fitting += timetable_.fits() ? 1 : 0;
    if (++window == 200) {
      if (fitting > 120) penalty_ *= 0.93;
      without_fit = fitting > 0 || has_best() ? 0 : without_fit + 1;
      if (fitting < 40) penalty_ *= without_fit > 3 ? 4 : 1.08;  // a first plan, whatever it costs
      penalty_ = std::clamp(penalty_, 1e-12, 1e12);
      window = fitting = 0;
      now = energy();
    }
  }
}

// ---- moves ---------------------------------------------------------------------------------------------------------

bool Search::move() {
  if (!timetable_.fits() && random_.chance(mix.overflow)) return drop_at_overflow() && repaired_sometimes();
  if (timetable_.repeats().empty() || random_.chance(mix.drop)) return drop_somewhere() && repaired_sometimes();
  const Occurrence repeat = timetable_.repeats()[random_.below(static_cast<Id>(timetable_.repeats().size()))];
  const double which = random_.unit();
  if (which < mix.shift) return shift(repeat);
  if (which < mix.shift + mix.swap) return swap(repeat);
  return remove_somehow(repeat);
}

bool Search::drop_somewhere() {
  const Stay stay = random_stay();
  return stay >= 0 && drop_across(stay, -1);
}

// Of a few stays across an occurrence above the budget, evict the one that costs least for what it frees.
bool Search::drop_at_overflow() {
  const Occurrence where = random_overflow();
  if (where < 0) return false;
  const Id here = timetable_.order(where);
  const double over = static_cast<double>(timetable_.live_at(where) - problem_.budget);
  Stay best = -1;
  double best_score = std::numeric_limits<double>::infinity();
  int wanted = 1 + random_.below(4);
  for (int tries = 0; tries < 40 && wanted > 0; ++tries) {
    const Stay stay = random_stay();
    if (stay < 0 || timetable_.order(timetable_.birth(stay)) >= here ||
        timetable_.order(timetable_.end(stay)) <= here) {
      continue;
    }
    const Id value = timetable_.value_of(stay);
    if (problem_.ways[value].empty()) continue;
    const double frees = std::min(std::max(1.0, static_cast<double>(problem_.bytes[value])), over);
    const double score = (problem_.cost[problem_.ways[value].front()] + 1) / frees * (0.5 + random_.unit());
    if (score < best_score) best_score = score, best = stay;
    --wanted;
  }
  return best >= 0 && drop_across(best, where);
}

// Evicts the value between two consecutive uses, around the given occurrence or in any gap, and recomputes it for the
// second of them.
bool Search::drop_across(Stay stay, Occurrence across) {
  const Id value = timetable_.value_of(stay);
  if (problem_.ways[value].empty()) return false;
  timetable_.uses_of(stay, uses_);
  Occurrence before = timetable_.birth(stay), gap_start = -1, gap_end = -1;
  int gaps = 0;
  for (const Occurrence use : uses_) {
    if (across >= 0) {
      if (timetable_.order(before) < timetable_.order(across) && timetable_.order(across) < timetable_.order(use)) {
        gap_start = before, gap_end = use;
      }
    } else if (timetable_.next(before) != use && random_.below(++gaps) == 0) {
      gap_start = before, gap_end = use;
    }
    before = use;
  }
  if (gap_end < 0) return false;

  const Id way = choose_way(value);
  Occurrence at = gap_end;
  if (random_.chance(
          mix.early)) {  // not right before the use, but anywhere in the gap, or where an input is still there
    const Occurrence from = across >= 0 ? across : gap_start;
    const auto inputs = problem_.inputs[way];
    if (!inputs.empty() && random_.chance(mix.near_input)) {
      const Stay input = timetable_.serving(inputs[random_.below(static_cast<Id>(inputs.size()))], gap_end);
      if (input >= 0) {
        const Occurrence end = timetable_.end(input);
        if (timetable_.order(end) < timetable_.order(gap_end) && timetable_.order(end) > timetable_.order(from)) {
          at = random_.chance(mix.after_input) ? timetable_.next(end) : end;
        }
      }
    } else {
      at = random_between(from, gap_end);
    }
  }
  pulls_left_ = (1 << random_.below(6)) - 1;
  depth_ = 0;
  return pull(way, at, gap_start);
}

Id Search::choose_way(Id value) {
  const auto ways = problem_.ways[value];
  if (ways.empty()) return nowhere;
  return ways.size() == 1 ? ways.front() : ways[random_.below(static_cast<Id>(ways.size()))];
}

bool Search::pull(Id node, Occurrence at, Occurrence gap_start) {
  if (++depth_ > deepest_pull) return false;
  if (problem_.is_get(node)) return pull_get(node, at, gap_start);
  for (Id missing = timetable_.missing_input(node, at); missing != nowhere;
       missing = timetable_.missing_input(node, at)) {
    // Its storage was taken over: a replay brings it back, or a copy from before that.
    const Id way = choose_way(missing);
    const Id taken = problem_.taken_at[missing];
    if (way == nowhere || taken == nowhere) return false;
    if (!pull(way, at, timetable_.previous(timetable_.first_of(taken)))) return false;
  }
  return pull_inputs(timetable_.insert(node, at));
}

bool Search::pull_get(Id get, Occurrence at, Occurrence gap_start) {
  if (timetable_.serving(problem_.inputs[get].front(), at) < 0) {
    const Id put = get - 1;
    const Occurrence place = place_of_put(problem_.outputs[get].front(), at, gap_start);
    if (timetable_.order(place) > timetable_.order(at) || !timetable_.can_insert(put, place)) return false;
    timetable_.insert(put, place);
  }
  timetable_.insert(get, at);
  return true;
}

// When the gap begins; or later in it, or earlier, when the value has been there for a while: where there is room.
Occurrence Search::place_of_put(Id value, Occurrence at, Occurrence gap_start) {
  const Occurrence begins = timetable_.next(gap_start);
  if (random_.chance(mix.put_later)) return random_between(gap_start, at);
  if (!random_.chance(mix.put_earlier)) return begins;
  const Id held_from = problem_.zone_first[value];
  if (held_from != nowhere && held_from < timetable_.moment_at(gap_start)) {
    return random_between(timetable_.first_of(held_from), begins);
  }
  const Stay stay = timetable_.serving(value, begins);
  return random_between(stay >= 0 ? timetable_.birth(stay) : gap_start, begins);
}

bool Search::pull_inputs(Occurrence pulled) {
  const auto inputs = problem_.inputs[timetable_.node_of(pulled)];
  for (auto input = inputs.end(); input != inputs.begin() && pulls_left_ > 0;) {
    const Id value = *--input;
    const Stay stay = timetable_.serving(value, pulled);
    if (stay < 0 || timetable_.end(stay) != pulled || problem_.ways[value].empty()) continue;
    const Id birth = timetable_.order(timetable_.birth(stay));
    const Occurrence last = timetable_.last_use_between(value, birth, timetable_.order(pulled));
    const Occurrence stretched_from = last < 0 ? timetable_.birth(stay) : last;
    if (timetable_.next(stretched_from) == pulled) continue;
    if (!random_.chance(timetable_.over_between(stretched_from, pulled) ? mix.pull_over : mix.pull_free)) continue;
    --pulls_left_;
    // In front of what this batch has put there already for later inputs, so that ancestors come first.
    const Id way = choose_way(value);
    Occurrence place = pulled;
    for (Occurrence p = timetable_.previous(place); p >= 0; p = timetable_.previous(p)) {
      if (!timetable_.is_repeat(p) || !timetable_.inserted_in_this_batch(p) || timetable_.node_of(p) <= way) break;
      place = p;
    }
    if (!pull(way, place, stretched_from)) return false;
  }
  return true;
}

bool Search::remove(Occurrence repeat) {
  if (!timetable_.can_erase(repeat)) return false;
  timetable_.erase(repeat);
  return true;
}

bool Search::remove_with_ancestors(Occurrence repeat) {
  const Id node = timetable_.node_of(repeat);
  const Id here = timetable_.order(repeat);
  if (!remove(repeat)) return false;
  for (const Id v : problem_.inputs[node]) remove_unused_ancestors(v, here);
  return true;
}

bool Search::remove_somehow(Occurrence repeat) {
  return random_.chance(mix.with_ancestors) ? remove_with_ancestors(repeat) : remove(repeat);
}

// The repeat that made the value for something that is gone now, if nothing else uses what it makes.
void Search::remove_unused_ancestors(Id value, Id before) {
  Stay stay = -1;
  const auto& stays = timetable_.stays_of(value);
  for (auto s = stays.rbegin(); s != stays.rend() && stay < 0; ++s) {
    if (timetable_.order(timetable_.birth(*s)) < before) stay = *s;
  }
  if (stay < 0) return;
  const Occurrence maker = timetable_.birth(stay);
  if (!timetable_.is_repeat(maker)) return;
  const Id node = timetable_.node_of(maker);
  for (Stay s = timetable_.first_stay(maker), n = 0; n < static_cast<Id>(problem_.outputs[node].size()); ++n) {
    if (timetable_.is_stay(s + n) && timetable_.end(s + n) != maker) return;
  }
  const Id here = timetable_.order(maker);
  timetable_.erase(maker);
  for (const Id v : problem_.inputs[node]) remove_unused_ancestors(v, here);
}

bool Search::shift(Occurrence repeat) {
  const Id node = timetable_.node_of(repeat);
  if (node >= problem_.moments || problem_.outputs[node].size() != 1) return false;
  const Stay stay = timetable_.first_stay(repeat);
  if (!timetable_.is_stay(stay)) return remove_with_ancestors(repeat);
  timetable_.uses_of(stay, uses_);
  if (uses_.empty()) return remove_with_ancestors(repeat);
  const Occurrence first_use = uses_.front();
  const auto& stays = timetable_.stays_of(timetable_.value_of(stay));
  const auto here = std::find(stays.begin(), stays.end(), stay);
  if (here == stays.begin()) return false;
  const Occurrence gap_start = timetable_.end(*(here - 1));

  Occurrence to = first_use;
  const double how = random_.unit();
  if (how >= mix.to_use && how < mix.to_use + mix.few_steps) {
    const bool back = random_.chance(mix.back);
    to = repeat;
    for (int steps = 1 + random_.below(4) + (back ? 0 : 1); steps > 0; --steps) {
      const Occurrence step = back ? timetable_.previous(to) : timetable_.next(to);
      if (step < 0) break;
      if (back ? timetable_.order(step) <= timetable_.order(gap_start)
               : timetable_.order(step) > timetable_.order(first_use))
        break;
      to = step;
    }
  } else if (how >= mix.to_use + mix.few_steps) {
    to = random_between(gap_start, first_use);
  }
  if (to == repeat || !timetable_.can_erase(repeat)) return false;
  timetable_.erase(repeat);
  if (!timetable_.can_insert(node, to)) return false;
  timetable_.insert(node, to);
  return true;
}

bool Search::swap(Occurrence repeat) {
  if (!remove_somehow(repeat)) return false;
  repair(1 + random_.below(3));
  return true;
}

// A repeat may itself have no room: then another value has to be evicted while it takes place, in the same move.
bool Search::repaired_sometimes() {
  if (random_.chance(mix.repaired)) repair(1 + random_.below(2));
  return true;
}

void Search::repair(int times) {
  for (int i = 0; i < times && !timetable_.fits(); ++i) {
    if (!drop_at_overflow()) return;
  }
}

// ---- sampling ------------------------------------------------------------------------------------------------------

Stay Search::random_stay() {
  const auto repeats = static_cast<Id>(timetable_.repeats().size());
  const auto anchors = static_cast<Id>(timetable_.anchors().size());
  for (int tries = 0; tries < 20; ++tries) {
    Id r = random_.below(problem_.moments + repeats + anchors);
    if (r >= problem_.moments + repeats) return timetable_.anchors()[r - problem_.moments - repeats];
    const Occurrence o = r < problem_.moments ? timetable_.first_of(r) : timetable_.repeats()[r - problem_.moments];
    const auto outputs = static_cast<Id>(problem_.outputs[timetable_.node_of(o)].size());
    if (outputs == 0) continue;
    const Stay stay = timetable_.first_stay(o) + (outputs == 1 ? 0 : random_.below(outputs));
    if (timetable_.is_stay(stay)) return stay;
  }
  return -1;
}

Occurrence Search::random_between(Occurrence after, Occurrence up_to) {
  const Id first = timetable_.rank_of_block(after), last = timetable_.rank_of_block(up_to);
  for (int tries = 0; tries < 4; ++tries) {
    const auto block = timetable_.block(first + random_.below(last - first + 1));
    if (block.empty()) continue;
    const Occurrence o = block[random_.below(static_cast<Id>(block.size()))];
    if (timetable_.order(o) > timetable_.order(after) && timetable_.order(o) <= timetable_.order(up_to)) return o;
  }
  return up_to;
}

Occurrence Search::random_overflow() {
  const Id blocks = timetable_.block_count();
  const Id start = random_.below(blocks);
  for (Id i = 0; i < blocks; ++i) {
    const Id rank = (start + i) % blocks;
    Id left = timetable_.over_in_block(rank);
    if (left == 0) continue;
    left = random_.below(left);
    for (const Occurrence o : timetable_.block(rank)) {
      if (timetable_.live_at(o) > problem_.budget && left-- == 0) return o;
    }
  }
  return -1;
}

}  // namespace reprise::internal
