#include "support/shortest_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <stdexcept>
#include <vector>

namespace reprise::testing {
namespace {

using Mask = std::uint32_t;

class Search {
 public:
  Search(const Trace& trace, Bytes budget) : trace_(trace), budget_(budget), values_(trace.value_count()) {
    if (values_ > 20) throw std::length_error("too many values to look at all plans");
    made_at_.assign(values_, -1);
    for (Id m = 0; m < trace.moment_count(); ++m) {
      for (const Id v : trace.outputs(m)) made_at_[v] = m;
    }
    bytes_of_.resize(std::size_t{1} << values_, 0);
    for (Mask mask = 1; mask < bytes_of_.size(); ++mask) {
      const int low = __builtin_ctz(mask);
      bytes_of_[mask] = bytes_of_[mask & (mask - 1)] + trace.values[low].bytes;
    }
    distance_.assign((trace.moments.size() + 1) << values_, infinite);
  }

  std::optional<double> run() {
    Mask start = 0;
    for (Id v = 0; v < values_; ++v) {
      if (made_at_[v] < 0 && !trace_.values[v].held) start |= bit(v);
    }
    reach(0, start, 0);
    while (!queue_.empty()) {
      const auto [cost, node] = queue_.top();
      queue_.pop();
      if (cost > distance_[node]) continue;
      const Id next = static_cast<Id>(node >> values_);
      const Mask ours = static_cast<Mask>(node & ((std::size_t{1} << values_) - 1));
      if (next == trace_.moment_count()) return cost;
      run_next(next, ours, cost);
      for (Id m = 0; m < next; ++m) replay(m, next, ours, cost);
      for (Id v = 0; v < values_; ++v) {
        if (ours & bit(v)) reach(next, ours & ~bit(v), cost);
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  static Mask bit(Id v) { return Mask{1} << v; }

  static Mask mask_of(const std::vector<Id>& values) {
    Mask mask = 0;
    for (const Id v : values) mask |= bit(v);
    return mask;
  }

  // What the program holds when `next` moments have run.
  Mask held(Id next) const {
    Mask mask = 0;
    for (Id v = 0; v < values_; ++v) {
      const auto& stretch = trace_.values[v].held;
      if (stretch && stretch->first < next && stretch->last >= next) mask |= bit(v);
    }
    return mask;
  }

  void run_next(Id next, Mask ours, double cost) {
    Mask holding = held(next);
    for (Id v = 0; v < values_; ++v) {
      const auto& stretch = trace_.values[v].held;
      if (!stretch || stretch->first != next || made_at_[v] == next) continue;
      if (made_at_[v] < 0) ours |= bit(v);
      if (!((ours | holding) & bit(v))) return;
      holding |= bit(v);
    }
    const Mask needs = mask_of(trace_.inputs(next));
    if ((needs & (ours | holding)) != needs) return;
    for (const Id v : trace_.outputs(next)) {
      if (const auto& input = trace_.values[v].takes_over) {
        ours &= ~bit(*input);
        holding &= ~bit(*input);
      }
      ours |= bit(v);
    }
    const Bytes live = bytes_of_[ours | holding] + trace_.moments[next].other + trace_.workspace(next);
    if (live <= budget_) reach(next + 1, ours, cost + trace_.cost(next));
  }

  void replay(Id m, Id next, Mask ours, double cost) {
    if (!trace_.replayable(m)) return;
    const Mask resident = ours | held(next), needs = mask_of(trace_.inputs(m)), makes = mask_of(trace_.outputs(m));
    if ((needs & resident) != needs || (makes & ~resident) == 0) return;
    const Id at = std::min(next, trace_.moment_count() - 1);
    const Bytes live =
        bytes_of_[resident | makes] + bytes_of_[resident & makes] + trace_.moments[at].other + trace_.workspace(m);
    if (live <= budget_) reach(next, ours | makes, cost + trace_.cost(m));
  }

  void reach(Id next, Mask ours, double cost) {
    const std::size_t node = static_cast<std::size_t>(next) << values_ | ours;
    if (cost >= distance_[node]) return;
    distance_[node] = cost;
    queue_.emplace(cost, node);
  }

  const Trace& trace_;
  const Bytes budget_;
  const Id values_;
  std::vector<Id> made_at_;
  std::vector<Bytes> bytes_of_;  // by set of values
  std::vector<double> distance_;
  using Entry = std::pair<double, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

std::optional<double> shortest_plan(const Trace& trace, Bytes budget) {
  return Search(trace, budget).run();
}

}  // namespace reprise::testing
