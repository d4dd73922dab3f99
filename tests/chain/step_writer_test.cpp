#include "chain/step_writer.h"

#include <gtest/gtest.h>

#include "chain/chain_rules.h"
#include "chain/random_steps.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

using testing::RandomSteps;

std::vector<Action> written(const ChainSteps& steps, Id layers, bool joined) {
  StepWriter writer(false, {}, true);
  writer.set_layers(layers);
  writer.set_joining(joined);
  writer.write(steps, steps.size());
  return writer.take_actions();
}

// What an action that stands for several layers stands for, as the header says. Where the drop of the state before the
// first of them follows, it may be meant for now or for later: as in `single`.
std::vector<Action> one_by_one(const std::vector<Action>& joined, const std::vector<Action>& single, Id layers) {
  std::vector<Action> result;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    const Action& action = joined[i];
    const auto moment = [&](Id more) { return Action{action.kind, action.target + more, 0}; };
    const bool moves = action.kind == Action::Kind::run || action.kind == Action::Kind::replay;
    if (!moves || action.tier == 0) {
      result.push_back(action);
    } else if (action.target >= layers) {
      for (Id more = 0; more <= action.tier; ++more) {
        if (more > 0) result.push_back(Action::drop(2 * layers - action.target - more));
        result.push_back(moment(more));
      }
    } else if (action.tier < 0) {
      for (Id more = 0; more <= -action.tier; ++more) result.push_back(moment(more));
    } else {
      result.push_back(moment(0));
      const Action drop = Action::drop(action.target);
      const bool is_next = result.size() < single.size() && single[result.size()] == drop;
      if (is_next && i + 1 < joined.size() && joined[i + 1] == drop) result.push_back(joined[++i]);
      for (Id more = 1; more <= action.tier; ++more) {
        result.push_back(moment(more));
        result.push_back(Action::drop(action.target + more));
      }
    }
  }
  return result;
}

// The rule that the actions break; empty if they break none.
std::string broken_rule(const std::vector<Action>& actions, Id layers) {
  ChainRules rules(false, 0);
  rules.set_layers(layers);
  try {
    rules.execute(actions, 0, {});
    rules.end();
  } catch (const BadOption& error) {
    const std::string text = error.what();
    return text.substr(text.rfind('('));
  }
  return "";
}

TEST(JoinedLayers, AreTheActionsOneByOneAndBreakTheSameRules) {
  std::size_t joined_actions = 0, all_actions = 0;
  int broken = 0;
  const auto compare = [&](const ChainSteps& steps, Id layers) {
    std::vector<Action> single;
    try {
      single = written(steps, layers, false);
    } catch (const BadOption&) {
      EXPECT_THROW((void)written(steps, layers, true), BadOption);
      return;
    }
    const std::vector<Action> joined = written(steps, layers, true);
    EXPECT_EQ(one_by_one(joined, single, layers), single);
    const std::string rule = broken_rule(single, layers);
    EXPECT_EQ(broken_rule(joined, layers), rule);
    broken += !rule.empty();
    joined_actions += joined.size();
    all_actions += single.size();
  };
  for (Id layers = 0; layers < 60; ++layers) {
    for (const auto& schedule : {schedule::everything(), schedule::every(1), schedule::every(4), schedule::every(7, 3),
                                 schedule::slots(1), schedule::slots(3), schedule::slots(12)}) {
      compare(all_steps(*schedule->steps(layers)), layers);
    }
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      compare(all_steps(*RandomSteps(seed, 1, false).steps(layers)), layers);
      compare(all_steps(*RandomSteps(seed, 1, true).steps(layers)), layers);
    }
  }
  EXPECT_LT(2 * joined_actions, all_actions);
  EXPECT_GT(broken, 500);
}

}  // namespace
}  // namespace reprise
