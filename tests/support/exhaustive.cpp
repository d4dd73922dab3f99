#include "exhaustive.h"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <unordered_map>

namespace reprise::testing {
namespace {

using Set = std::uint32_t;  // of values, or of copies

constexpr Set only(Id item) {
  return Set{1} << item;
}
constexpr bool has(Set set, Id item) {
  return (set & only(item)) != 0;
}

struct State {
  Id run = 0;      // moments that have run: 0..run-1
  Set ours = 0;    // values that were made, got or arrived, and not dropped
  Set copies = 0;  // in tiers
  // Of transfers beside the computation, what is left from now on; see Machine::Left. Empty if there are none.
  std::vector<double> left;

  [[nodiscard]] std::uint64_t sets() const {
    return std::uint64_t{ours} | std::uint64_t{copies} << 24 | static_cast<std::uint64_t>(run) << 48;
  }
  bool operator==(const State&) const = default;
};

struct HashOfState {
  std::size_t operator()(const State& state) const {
    std::size_t hash = std::hash<std::uint64_t>()(state.sets());
    for (const double left : state.left) hash = hash * 31 + std::hash<double>()(left);
    return hash;
  }
};

struct Step {
  Action action;
  State to;
  Bytes live = 0;   // while the action takes place
  double cost = 0;  // beside running every moment once
};

class Machine {
 public:
  enum class Clock { read, not_read };
  Machine(const Trace& trace, Clock clock) : trace_(trace), n_(trace.moment_count()) {
    if (trace.value_count() > 24 || n_ > 60) throw std::logic_error("too large for exhaustive search");
    for (Id t = 0; t < static_cast<Id>(trace.tiers.size()); ++t) {
      for (const TierEntry& entry : trace.tiers[t].entries) copies_.push_back({t, entry});
    }
    if (copies_.size() > 24) throw std::logic_error("too many entries of tiers for exhaustive search");
    made_.assign(trace.values.size(), -1);
    taken_.assign(trace.values.size(), -1);
    for (Id m = 0; m < n_; ++m) {
      for (const Id v : trace.outputs(m)) {
        made_[v] = m;
        if (trace.values[v].takes_over) taken_[*trace.values[v].takes_over] = m;
      }
    }
    for (const Tier& tier : trace.tiers) timed_ = timed_ || (clock == Clock::read && tier.overlaps());
  }

  // Values from outside are there from the start, unless they arrive when the program begins to hold them.
  [[nodiscard]] State start() const {
    State state;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (made_[v] < 0 && !trace_.values[v].held) state.ours |= only(v);
    }
    if (timed_) state.left.assign(2 * trace_.tiers.size() + copies_.size() + 2 * trace_.values.size(), 0);
    return state;
  }
  [[nodiscard]] bool is_end(const State& state) const { return state.run == n_; }

  void steps_from(const State& s, std::vector<Step>& steps) const {
    steps.clear();
    if (s.run < n_) run(s, steps);
    for (Id m = 0; m < s.run; ++m) replay(s, m, steps);
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (has(s.ours, v)) drop(s, v, steps);
    }
    for (Id c = 0; c < static_cast<Id>(copies_.size()); ++c) put_or_get(s, c, steps);
  }

 private:
  struct Copy {
    Id tier;
    TierEntry entry;
  };

  void run(const State& s, std::vector<Step>& steps) const {
    const Id m = s.run;
    State to = s;
    Set there = resident(s);
    double waited = 0;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      const auto& held = trace_.values[v].held;
      if (!held || held->first != m) continue;
      if (made_[v] >= 0 && made_[v] < m) waited = std::max(waited, left(s, busy(v)));
      if (made_[v] < 0) {  // arrives from outside
        to.ours |= only(v);
        there |= only(v);
      } else if (made_[v] < m && !has(there, v)) {
        return;  // the program wants to hold what is gone
      }
    }
    for (const Id v : trace_.inputs(m)) {
      if (!has(there, v)) return;
      waited = std::max(waited, left(s, arriving(v)));
    }
    for (const Id v : trace_.outputs(m)) {
      if (trace_.values[v].takes_over) {
        waited = std::max(waited, left(s, busy(*trace_.values[v].takes_over)));
        there &= ~only(*trace_.values[v].takes_over);
        to.ours &= ~only(*trace_.values[v].takes_over);
      }
    }
    for (const Id v : trace_.outputs(m)) {
      there |= only(v);
      to.ours |= only(v);
    }
    ++to.run;
    const Bytes live = bytes(there) + counted_copies(s.copies) + trace_.workspace(m) + trace_.moments[m].other;
    pass(to, waited + trace_.cost(m));
    steps.push_back({Action::run(m), to, live, waited});
  }

  void replay(const State& s, Id m, std::vector<Step>& steps) const {
    if (!trace_.replayable(m)) return;
    const Set there = resident(s);
    Set outputs = 0;
    double waited = 0;
    for (const Id v : trace_.inputs(m)) {
      if (!has(there, v)) return;
      waited = std::max(waited, left(s, arriving(v)));
    }
    for (const Id v : trace_.outputs(m)) outputs |= only(v);
    State to = s;
    to.ours |= outputs;
    // All outputs are made; those that were there already are there twice until it ends.
    const Bytes live =
        bytes(there) + bytes(outputs) + trace_.workspace(m) + counted_copies(s.copies) + other_between(s);
    pass(to, waited + trace_.cost(m));
    steps.push_back({Action::replay(m), to, live, waited + trace_.cost(m)});
  }

  // Only frees, so it is never held against the budget.
  void drop(const State& s, Id v, std::vector<Step>& steps) const {
    State to = s;
    to.ours &= ~only(v);
    const double waited = pass_until_free(to, only(v) & ~resident(to));
    steps.push_back({Action::drop(v), to, 0, waited});
  }

  void put_or_get(const State& s, Id c, std::vector<Step>& steps) const {
    const auto& [tier, entry] = copies_[c];
    const Set there = resident(s);
    State to = s;
    if (!has(s.copies, c)) {
      if (!has(there, entry.value)) return;
      to.copies |= only(c);
      const auto& capacity = trace_.tiers[tier].capacity;
      if (capacity && bytes_in_tier(to.copies, tier) > *capacity) return;
      const Bytes live = bytes(there) + counted_copies(to.copies) + other_between(s);
      put_in_time(to, c);
      State without = s;
      without.ours &= ~only(entry.value);
      const double waited = pass_until_free(to, resident(without) & only(entry.value));  // the program holds it
      steps.push_back({Action::put(entry.value, tier), to, live, entry.put_cost + waited});
    } else if (!has(there, entry.value)) {
      to.ours |= only(entry.value);
      const Bytes live = bytes(resident(to)) + counted_copies(s.copies) + other_between(s);
      get_in_time(to, c);
      steps.push_back({Action::get(entry.value, tier), to, live, entry.get_cost});  // not the last one
      to.copies &= ~only(c);
      steps.push_back({Action::get(entry.value, tier), to, live, entry.get_cost});  // the last one
    }
  }

  // ---- what is left of transfers, by tier, copy and value ----
  using Left = std::size_t;
  [[nodiscard]] static Left puts(Id tier) { return 2 * static_cast<Left>(tier); }
  [[nodiscard]] static Left gets(Id tier) { return puts(tier) + 1; }
  [[nodiscard]] Left written(Id copy) const { return 2 * trace_.tiers.size() + static_cast<Left>(copy); }
  [[nodiscard]] Left arriving(Id v) const {
    return 2 * trace_.tiers.size() + copies_.size() + 2 * static_cast<Left>(v);
  }
  [[nodiscard]] Left busy(Id v) const { return arriving(v) + 1; }
  [[nodiscard]] double left(const State& s, Left what) const { return timed_ ? s.left[what] : 0; }

  static void pass(State& s, double time) {
    for (double& left : s.left) left = std::max(0.0, left - time);
  }
  // Until nothing transfers these; returns how long that takes.
  double pass_until_free(State& s, Set values) const {
    double waited = 0;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (has(values, v)) waited = std::max(waited, left(s, busy(v)));
    }
    pass(s, waited);
    return waited;
  }
  void put_in_time(State& s, Id c) const {
    const auto& [t, entry] = copies_[c];
    const Tier& tier = trace_.tiers[t];
    pass(s, entry.put_cost);
    if (!timed_ || !tier.overlaps()) return;
    double begin = std::max(left(s, arriving(entry.value)), left(s, puts(t)));
    if (!tier.duplex || tier.capacity) begin = std::max(begin, left(s, gets(t)));
    s.left[puts(t)] = s.left[written(c)] = begin + entry.put_time;
    s.left[busy(entry.value)] = std::max(s.left[busy(entry.value)], s.left[puts(t)]);
  }
  void get_in_time(State& s, Id c) const {
    const auto& [t, entry] = copies_[c];
    const Tier& tier = trace_.tiers[t];
    pass(s, entry.get_cost);
    if (!timed_ || !tier.overlaps()) return;
    double begin = std::max(left(s, written(c)), left(s, gets(t)));
    if (!tier.duplex) begin = std::max(begin, left(s, puts(t)));
    s.left[gets(t)] = s.left[arriving(entry.value)] = begin + entry.get_time;
    s.left[busy(entry.value)] = std::max(s.left[busy(entry.value)], s.left[gets(t)]);
  }

  [[nodiscard]] Set resident(const State& s) const {
    Set set = s.ours;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      const auto& held = trace_.values[v].held;
      const bool over = taken_[v] >= 0 && taken_[v] < s.run;
      if (held && held->first < s.run && s.run <= held->last && !over) set |= only(v);
    }
    return set;
  }
  [[nodiscard]] Bytes bytes(Set set) const {
    Bytes sum = 0;
    for (Id v = 0; v < trace_.value_count(); ++v) sum += has(set, v) ? trace_.values[v].bytes : 0;
    return sum;
  }
  [[nodiscard]] Bytes bytes_in_tier(Set copies, Id tier) const {
    Bytes sum = 0;
    for (Id c = 0; c < static_cast<Id>(copies_.size()); ++c) {
      if (has(copies, c) && copies_[c].tier == tier) sum += copies_[c].entry.bytes;
    }
    return sum;
  }
  [[nodiscard]] Bytes counted_copies(Set copies) const {
    Bytes sum = 0;
    for (Id t = 0; t < static_cast<Id>(trace_.tiers.size()); ++t) {
      if (trace_.tiers[t].in_budget) sum += bytes_in_tier(copies, t);
    }
    return sum;
  }
  // What happens between two moments belongs to the later one.
  [[nodiscard]] Bytes other_between(const State& s) const {
    return n_ == 0 ? 0 : trace_.moments[std::min(s.run, n_ - 1)].other;
  }

  const Trace& trace_;
  const Id n_;
  std::vector<Copy> copies_;
  std::vector<Id> made_, taken_;  // by value: the moment; -1: none
  bool timed_ = false;            // a tier takes time beside the computation
};

// The path to an end whose worth, grown step by step by `grow` (never below what it was), is smallest. Steps to which
// it gives nothing are not taken.
template <typename Worth, typename Grow>
class BestPath {
 public:
  BestPath(const Trace& trace, Machine::Clock clock, Grow grow) : machine_(trace, clock), grow_(grow) {}

  bool find() {
    const State start = machine_.start();
    reached_[start] = {Worth{}, {}, start, false};
    queue_.push({Worth{}, start});
    std::vector<Step> steps;
    while (!queue_.empty()) {
      const auto [worth, state] = queue_.top();
      queue_.pop();
      Reached& here = reached_[state];
      if (here.done) continue;
      here.done = true;
      if (machine_.is_end(state)) {
        worth_ = worth;
        remember_way_to(state);
        return true;
      }
      machine_.steps_from(state, steps);
      for (const Step& step : steps) {
        const std::optional<Worth> then = grow_(worth, step);
        if (!then) continue;
        const auto [known, is_new] = reached_.try_emplace(step.to);
        if (!is_new && known->second.worth <= *then) continue;
        known->second = {*then, step.action, state, false};
        queue_.push({*then, step.to});
      }
    }
    return false;
  }

  [[nodiscard]] Worth worth() const { return worth_; }
  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }

 private:
  struct Reached {
    Worth worth{};
    Action action;
    State from;
    bool done = false;
  };
  struct Waiting {
    Worth worth;
    State state;
    bool operator<(const Waiting& other) const {  // the last in order is looked at first
      return worth != other.worth ? worth > other.worth : state.run < other.state.run;
    }
  };

  void remember_way_to(State state) {
    while (!(reached_[state].from == state)) {
      actions_.push_back(reached_[state].action);
      state = State(reached_[state].from);
    }
    std::reverse(actions_.begin(), actions_.end());
  }

  const Machine machine_;
  const Grow grow_;
  std::unordered_map<State, Reached, HashOfState> reached_;
  std::priority_queue<Waiting> queue_;
  Worth worth_{};
  std::vector<Action> actions_;
};

}  // namespace

bool small_enough_for_exhaustive_search(const Trace& trace, int values_and_entries) {
  std::size_t size = trace.values.size();
  for (const Tier& tier : trace.tiers) size += tier.entries.size();
  return size <= static_cast<std::size_t>(values_and_entries);
}

std::optional<CheapestPlan> cheapest_plan(const Trace& trace, Bytes budget) {
  const auto grow = [budget](double cost, const Step& step) -> std::optional<double> {
    if (step.live > budget) return std::nullopt;
    return cost + step.cost;
  };
  BestPath<double, decltype(grow)> path(trace, Machine::Clock::read, grow);
  if (!path.find()) return std::nullopt;
  return CheapestPlan{trace.total_cost() + path.worth(), {budget, trace.tiers, path.actions()}};
}

LowestPlan lowest_plan(const Trace& trace) {
  const auto grow = [](Bytes peak, const Step& step) -> std::optional<Bytes> { return std::max(peak, step.live); };
  BestPath<Bytes, decltype(grow)> path(trace, Machine::Clock::not_read, grow);
  if (!path.find()) throw std::logic_error("a trace without any plan");  // running everything once is one
  return {path.worth(), {path.worth(), trace.tiers, path.actions()}};
}

}  // namespace reprise::testing
