#include "plan/search/online_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/search/random.h"

namespace reprise::internal {
namespace {

constexpr double not_recomputable = 1e280;  // the score of a value that could never be recomputed

class OnlineSimulation {
 public:
  OnlineSimulation(const Problem& problem, const std::vector<std::vector<Id>>& uses, const OnlineScore& score,
                   const OnlineLimits& limits, const Guidance* guidance)
      : problem_(problem),
        uses_(uses),
        score_(score),
        limits_(limits),
        guidance_(guidance),
        place_(problem.trace_values, -1),
        locks_(problem.trace_values, 0),
        next_use_(problem.trace_values, 0),
        touched_(problem.trace_values, 0),
        mark_(problem.nodes, 0),
        get_of_(problem.trace_values, nowhere),
        copied_(problem.trace_values, 0),
        most_actions_(30 * static_cast<std::size_t>(problem.moments) + 1000) {
    if (score.kind == OnlineScore::Kind::oracle) find_gets();
  }

  std::optional<std::vector<Id>> run() {
    for (const Id v : problem_.anchored[problem_.moments]) add(v);
    for (now_ = 0; now_ < problem_.moments; ++now_) {
      if (!run_moment()) return std::nullopt;
    }
    return std::move(sequence_);
  }

 private:
  // ---- residency ----
  bool resident(Id v) const { return place_[v] >= 0; }
  bool held(Id v) const { return problem_.held_while(v, now_, false); }
  bool available(Id v, Id node) const { return resident(v) || problem_.held_while(v, now_, node == now_); }
  void add(Id v) {
    if (resident(v)) return;
    place_[v] = static_cast<Id>(residents_.size());
    residents_.push_back(v);
    bytes_ += problem_.bytes[v];
  }
  void remove(Id v) {
    if (!resident(v)) return;
    const Id moved = residents_.back();
    residents_[place_[v]] = moved;
    place_[moved] = place_[v];
    residents_.pop_back();
    place_[v] = -1;
    bytes_ -= problem_.bytes[v];
  }
  bool can_be_recomputed(Id v) const { return problem_.maker[v] != nowhere && problem_.may_repeat[problem_.maker[v]]; }

  // ---- copies in tiers ----
  // The cheapest get of each value that has one. The known heuristics only replay.
  void find_gets() {
    const auto& cost = problem_.cost;
    for (Id v = 0; v < problem_.trace_values; ++v) {
      Id& best = get_of_[v];
      for (const Id way : problem_.ways[v]) {
        if (!problem_.is_get(way) || problem_.bytes[copy_of(way)] >= problem_.bytes[v]) continue;
        if (best == nowhere || cost[way] + cost[put_of(way)] < cost[best] + cost[put_of(best)]) best = way;
      }
    }
  }
  static Id put_of(Id get) { return get - 1; }
  Id copy_of(Id get) const { return problem_.inputs[get].front(); }
  // Of a node that is no first occurrence, beside the residents.
  Bytes need_of(Id node) const {
    return problem_.before[now_] + problem_.workspace[node] + problem_.output_bytes[node];
  }
  bool room_for_copy(Id v) const {
    return get_of_[v] != nowhere && bytes_ + need_of(put_of(get_of_[v])) <= problem_.budget;
  }
  bool can_be_got(Id v) const { return get_of_[v] != nowhere && (copied_[v] || room_for_copy(v)); }
  double copy_cost(Id v) const {
    const Id get = get_of_[v];
    return problem_.cost[get] + (copied_[v] ? 0 : problem_.cost[put_of(get)]);
  }
  bool put(Id v) {
    if (copied_[v]) return true;
    copied_[v] = 1;
    bytes_ += problem_.bytes[copy_of(get_of_[v])];
    return note(put_of(get_of_[v]));
  }
  bool get(Id v) {
    if (!make_room(need_of(get_of_[v]))) return false;
    add(v);
    touched_[v] = clock_;
    return note(get_of_[v]);
  }
  void evict_copy(Id v) {
    if (!copied_[v]) return;
    copied_[v] = 0;
    bytes_ -= problem_.bytes[copy_of(get_of_[v])];
  }

  // Adds the node to the sequence. Returns false if this has become too long or too expensive.
  bool note(Id node) {
    sequence_.push_back(node);
    clock_ += problem_.cost[node];
    if (clock_ > limits_.cost_ratio * problem_.plain_cost || sequence_.size() > most_actions_) return false;
    return sequence_.size() % 256 != 0 || !limits_.stop || !limits_.stop();
  }

  // Returns the next moment that needs it, this one included; the number of moments if none does.
  Id next_use(Id v) {
    const auto& list = uses_[v];
    Id& k = next_use_[v];
    while (k < static_cast<Id>(list.size()) && list[k] < now_) ++k;
    return k < static_cast<Id>(list.size()) ? list[k] : problem_.moments;
  }

  // ---- recomputing ----
  // A node to be made, with the inputs before `next_input` available.
  struct Frame {
    Id node;
    Id next_input;
  };

  // Makes the node, and before it whatever it needs and is missing. Everything that a node on the stack reads is
  // locked, also what is still to be recomputed, so that it stays when it comes.
  bool make(Id node) {
    std::vector<Frame> stack;
    const auto open = [&](Id opened) {
      for (const Id v : problem_.inputs[opened]) ++locks_[v];
      stack.push_back({opened, 0});
    };
    open(node);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const auto inputs = problem_.inputs[frame.node];
      while (frame.next_input < static_cast<Id>(inputs.size()) && available(inputs[frame.next_input], frame.node)) {
        ++frame.next_input;
      }
      if (frame.next_input == static_cast<Id>(inputs.size())) {
        if (!finish(frame.node)) return false;
        stack.pop_back();
        continue;
      }
      const Id missing = inputs[frame.next_input];
      if (copied_[missing]) {
        if (!get(missing)) return false;
        continue;
      }
      if (!can_be_recomputed(missing) || stack.size() > most_actions_) return false;
      open(problem_.maker[missing]);
    }
    return true;
  }

  // A held stretch that starts at this moment needs its value although the operator does not read it.
  bool run_moment() {
    std::vector<Id> needed;
    for (const Id v : problem_.timeline.hold_starts(now_)) {
      if (problem_.extra_need[v] == now_) needed.push_back(v);
    }
    for (const Id v : needed) ++locks_[v];
    for (const Id v : needed) {
      if (resident(v)) continue;
      if (!(copied_[v] ? get(v) : can_be_recomputed(v) && make(problem_.maker[v]))) return false;
    }
    if (!make(now_)) return false;
    for (const Id v : needed) --locks_[v], drop_if_done(v, now_);
    return true;
  }

  bool finish(Id node) {
    const bool first = node == now_;
    const auto outputs = problem_.outputs[node];
    Bytes need = problem_.at[node];
    if (!first) {
      for (const Id v : outputs) remove(v);  // made again anyway
      need = need_of(node);
    }
    if (!make_room(need) || !note(node)) return false;

    for (const Id v : problem_.inputs[node]) {
      --locks_[v];
      touched_[v] = clock_;
    }
    for (const Id v : outputs) {
      if (const auto& input = problem_.trace.values[v].takes_over; input && first) remove(*input);
      const bool no_stay = first ? problem_.zone_first[v] == node : held(v);
      if (!no_stay) add(v);
      touched_[v] = clock_;
    }
    if (first) {
      for (const Id v : problem_.anchored[node]) add(v), drop_if_done(v, node);
      for (const Id v : outputs) drop_if_done(v, node);
    }
    for (const Id v : problem_.inputs[node]) drop_if_done(v, node);
    return true;
  }

  // Not needed later, and recomputable, so that no replay can depend on it.
  void drop_if_done(Id v, Id node) {
    if (!resident(v) || locks_[v] > 0 || !can_be_recomputed(v)) return;
    const Id next = next_use(v);
    const bool last = next == now_ && node == now_ && uses_[v].back() == now_;
    if (next == problem_.moments || last) remove(v), evict_copy(v);
  }

  // Of very many residents only a sample is looked at: the cheapest of some hundred is nearly as good, and each
  // eviction stays quick.
  static constexpr Id all_looked_at = 4096, sample = 256;

  bool make_room(Bytes need) {
    while (bytes_ + need > problem_.budget) {
      Id victim = nowhere;
      double lowest = std::numeric_limits<double>::infinity();
      const auto consider = [&](Id v) {
        if (locks_[v] > 0) return;
        const double s = score(v);
        if (s < lowest) lowest = s, victim = v;
      };
      const auto count = static_cast<Id>(residents_.size());
      if (count > all_looked_at) {
        for (Id i = 0; i < sample; ++i) consider(residents_[random_.below(count)]);
        if (limits_.stop && limits_.stop()) return false;
      } else {
        for (const Id v : residents_) consider(v);
      }
      if (victim == nowhere) return false;
      if (copies(victim) && !put(victim)) return false;
      remove(victim);
    }
    return true;
  }

  // ---- scores ----
  // Returns whether getting the copy is cheaper than recomputing the value.
  bool copies(Id v) {
    if (!can_be_got(v) || next_use(v) == problem_.moments) return false;
    return !can_be_recomputed(v) || copy_cost(v) < problem_.cost[problem_.maker[v]] + missing_ancestors(v);
  }
  double score(Id v) {
    if (!can_be_recomputed(v) && (!can_be_got(v) || next_use(v) == problem_.moments)) {
      return next_use(v) == problem_.moments ? not_recomputable : 2 * not_recomputable;
    }
    const double bytes = std::max(1.0, static_cast<double>(problem_.bytes[v]));
    const double stale = clock_ - touched_[v] + 1;
    const double cost = can_be_recomputed(v) ? problem_.cost[problem_.maker[v]] : 0;
    switch (score_.kind) {
      case OnlineScore::Kind::dtr: return (cost + missing_ancestors(v) + missing_descendants(v)) / (bytes * stale);
      case OnlineScore::Kind::local: return cost / (bytes * stale);
      case OnlineScore::Kind::msps: return (cost + missing_ancestors(v)) / bytes;
      case OnlineScore::Kind::lru: return 1 / stale;
      case OnlineScore::Kind::largest: return 1 / bytes;
      case OnlineScore::Kind::oracle: break;
    }
    const Id next = next_use(v);
    if (next == problem_.moments) return 0;
    double weight = cost;
    if (copies(v)) {
      weight = copy_cost(v);
    } else {
      if (score_.ancestors > 0) weight += score_.ancestors * missing_ancestors(v);
      if (score_.descendants > 0) weight += score_.descendants * missing_descendants(v);
    }
    weight += 1e-9 * problem_.plain_cost / problem_.moments;
    const double distance = next - now_ + 1;
    double result = weight / (power(bytes, score_.size_power) * power(distance, score_.distance_power));
    if (guidance_) result *= 1.001 - guidance_->weight * static_cast<double>(guidance_->absent[v][next_use_[v]]);
    return result;
  }

  static double power(double x, double exponent) {
    if (exponent == 0) return 1;
    if (exponent == 1) return x;
    if (exponent == 0.5) return std::sqrt(x);
    if (exponent == 0.25) return std::sqrt(std::sqrt(x));
    return std::pow(x, exponent);
  }

  static constexpr int most_relatives = 60;  // visited by the oracle, and in long traces

  // Cost of the operators that would have to be replayed before the value's maker.
  double missing_ancestors(Id v) {
    return missing_cost(problem_.maker[v], [&](Id node, auto visit) {
      for (const Id input : problem_.inputs[node]) {
        const Id way = copied_[input] ? get_of_[input] : problem_.maker[input];
        if (way != nowhere && !resident(input) && !held(input)) visit(way);
      }
    });
  }
  // Cost of the evicted operators that would need the value to be replayed.
  double missing_descendants(Id v) {
    return missing_cost(problem_.maker[v], [&](Id node, auto visit) {
      for (const Id output : problem_.outputs[node]) {
        for (const Id user : problem_.users[output]) {
          if (user >= now_ || problem_.outputs[user].empty()) continue;
          const Id made = problem_.outputs[user].front();
          if (!resident(made) && !held(made) && !copied_[made]) visit(user);
        }
      }
    });
  }
  template <typename Neighbours>
  double missing_cost(Id start, Neighbours neighbours) {
    double sum = 0;
    int seen = 0;
    const bool limited = score_.kind == OnlineScore::Kind::oracle || problem_.moments > 20'000;
    const int most = limited ? most_relatives : std::numeric_limits<int>::max();
    ++stamp_;
    mark_[start] = stamp_;
    pending_.assign(1, start);
    while (!pending_.empty() && seen <= most) {
      const Id node = pending_.back();
      pending_.pop_back();
      neighbours(node, [&](Id other) {
        if (mark_[other] == stamp_) return;
        mark_[other] = stamp_;
        sum += problem_.cost[other];
        if (!problem_.is_get(other)) pending_.push_back(other);
        ++seen;
      });
    }
    return sum;
  }

  const Problem& problem_;
  const std::vector<std::vector<Id>>& uses_;
  const OnlineScore& score_;
  const OnlineLimits& limits_;
  const Guidance* guidance_;

  Id now_ = 0;                         // the moment to run
  double clock_ = 0;                   // cost so far
  Bytes bytes_ = 0;                    // of residents
  std::vector<Id> place_, residents_;  // by value: where in the list of residents; -1: not resident
  std::vector<Id> locks_, next_use_;
  std::vector<double> touched_;
  std::vector<int> mark_;
  int stamp_ = 0;
  std::vector<Id> pending_;
  std::vector<Id> get_of_;    // by value: the get to use; nowhere: none
  std::vector<char> copied_;  // by value: whether there is a copy
  std::size_t most_actions_;
  Random random_{1};
  std::vector<Id> sequence_;
};

}  // namespace

const std::vector<OnlineScore>& oracle_scores() {
  static const std::vector<OnlineScore> scores = [] {
    const double settings[][4] = {{1, .5, 1, 0},  {1, 2, 1, 0},    {1, .25, .3, .3}, {1, 0, 1, 0},    {1, 1, .3, .3},
                                  {.5, .5, 1, 0}, {.5, .25, 0, 0}, {1, .5, 0, 0},    {.5, 1, .3, .3}, {1, .5, 1, 1},
                                  {1, .25, 1, 0}, {.5, .25, 1, 0}, {1, 1, 1, 0},     {1, .5, .3, .3}, {.5, .5, .3, .3},
                                  {1, 0, 1, 1},   {.5, .25, 1, 1}, {1, 1, 0, 0},     {.5, .5, 0, 0},  {1, 2, .3, .3}};
    std::vector<OnlineScore> list;
    for (const auto& s : settings) list.push_back({OnlineScore::Kind::oracle, s[0], s[1], s[2], s[3]});
    return list;
  }();
  return scores;
}

std::vector<std::vector<Id>> first_uses(const Problem& problem) {
  std::vector<std::vector<Id>> uses(problem.trace_values);
  for (Id v = 0; v < problem.trace_values; ++v) {
    for (const Id m : problem.timeline.needed_at(v)) {
      if (!problem.held_while(v, m, true)) uses[v].push_back(m);
    }
  }
  return uses;
}

std::optional<std::vector<Id>> simulate_online(const Problem& problem, const std::vector<std::vector<Id>>& uses,
                                               const OnlineScore& score, const OnlineLimits& limits,
                                               const Guidance* guidance) {
  auto nodes = OnlineSimulation(problem, uses, score, limits, guidance).run();
  if (!nodes) return std::nullopt;
  return without_useless_repeats(problem, std::move(*nodes));
}

std::vector<Id> without_useless_repeats(const Problem& problem, std::vector<Id> nodes) {
  std::vector<std::size_t> first(problem.moments, nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (nodes[i] < problem.moments) first[nodes[i]] = i;
  }
  // Backwards: a repeat is useful if something useful after it reads what it makes before that is made again.
  std::vector<char> wanted(problem.values, 0), useful(nodes.size(), 0);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Id node = nodes[i];
    const bool is_run = node < problem.moments && first[node] == i;
    useful[i] = is_run;
    for (const Id v : problem.outputs[node]) {
      if (wanted[v]) useful[i] = 1;
      wanted[v] = 0;
    }
    if (!useful[i]) continue;
    for (const Id v : problem.inputs[node]) wanted[v] = 1;
    if (!is_run) continue;
    for (const Id v : problem.timeline.hold_starts(node)) {
      if (problem.extra_need[v] == node) wanted[v] = 1;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (useful[i]) nodes[kept++] = nodes[i];
  }
  nodes.resize(kept);
  return nodes;
}

}  // namespace reprise::internal
