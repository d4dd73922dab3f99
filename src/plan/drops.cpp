#include "plan/drops.h"

#include <algorithm>
#include <limits>

namespace reprise::internal {
namespace {

constexpr std::size_t absent = std::numeric_limits<std::size_t>::max();

// Finds, for every stay of a value in memory, the action after which it is not needed any more.
class Stays {
 public:
  Stays(const Trace& trace, const Timeline& timeline, const std::vector<Action>& actions)
      : trace_(trace), timeline_(timeline), last_use_(trace.values.size(), absent), dropped_after_(actions.size() + 1) {
    for (Id v = 0; v < trace.value_count(); ++v) {
      if (timeline.made_at(v) == nowhere && !trace.values[v].held) last_use_[v] = 0;  // there from the start
    }
    for (std::size_t i = 0; i < actions.size(); ++i) visit(actions[i], i + 1);
    for (Id v = 0; v < trace.value_count(); ++v) close(v);
  }

  // Values to drop after the first `count` actions.
  [[nodiscard]] const std::vector<Id>& dropped_after(std::size_t count) const { return dropped_after_[count]; }

 private:
  void visit(const Action& action, std::size_t now) {
    switch (action.kind) {
      case Action::Kind::run:
        for (const Id v : timeline_.hold_starts(action.target)) {
          if (timeline_.made_at(v) == nowhere) last_use_[v] = now;
          if (timeline_.made_at(v) < action.target) use(v, now);
        }
        for (const Id v : trace_.inputs(action.target)) use(v, now);
        for (const Id v : trace_.outputs(action.target)) {
          if (const auto& input = trace_.values[v].takes_over) last_use_[*input] = absent;
          make(v, now);
        }
        break;
      case Action::Kind::replay:
        for (const Id v : trace_.inputs(action.target)) use(v, now);
        for (const Id v : trace_.outputs(action.target)) make(v, now);
        break;
      case Action::Kind::put: use(action.target, now); break;
      case Action::Kind::get: make(action.target, now); break;
      case Action::Kind::drop: break;
    }
  }

  void use(Id v, std::size_t now) {
    if (last_use_[v] != absent) last_use_[v] = now;
  }
  void make(Id v, std::size_t now) {
    close(v);
    last_use_[v] = now;
  }
  void close(Id v) {
    if (last_use_[v] != absent) dropped_after_[last_use_[v]].push_back(v);
    last_use_[v] = absent;
  }

  const Trace& trace_;
  const Timeline& timeline_;
  std::vector<std::size_t> last_use_;  // by value: actions taken up to its last use so far; absent: not resident
  std::vector<std::vector<Id>> dropped_after_;
};

}  // namespace

Plan with_drops(const Trace& trace, const Timeline& timeline, std::vector<Tier> tiers,
                const std::vector<Action>& actions, Bytes budget) {
  const Stays stays(trace, timeline, actions);
  Plan plan{budget, std::move(tiers), {}};
  plan.actions.reserve(actions.size() * 2);
  const auto drop_after = [&](std::size_t count) {
    for (const Id v : stays.dropped_after(count)) plan.actions.push_back(Action::drop(v));
  };
  drop_after(0);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    plan.actions.push_back(actions[i]);
    drop_after(i + 1);
  }
  return plan;
}

}  // namespace reprise::internal
