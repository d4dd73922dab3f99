#include "chain/pass_actions.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace reprise::pass_actions_test {
namespace {

using internal::ChainPlan;
using internal::PassActions;

TEST(PassActions, NameTheStatesThatTheNextGetsFromTheDiskWant) {
  ChainForm form = equal_layers(30);
  add_disk_tier(form, 0.1, 0.1);
  const SchedulePointer schedule =
      schedule::memory_and_disk({.memory_slots = 1, .disk_slots = 4, .write_cost = 0.1, .read_cost = 0.1});
  const auto plan = std::make_shared<ChainPlan>(form, schedule->plan(form));
  ASSERT_GT(plan->disk_states.size(), 3u);
  PassActions actions(plan);
  std::size_t gets = 0;
  while (const Action* next = actions.next()) {
    const std::vector<Id> left(plan->disk_states.begin() + static_cast<std::ptrdiff_t>(gets), plan->disk_states.end());
    const auto wanted = actions.wanted_from_disk(2);
    ASSERT_EQ(wanted.size(), std::min<std::size_t>(left.size(), 2));
    EXPECT_TRUE(std::ranges::equal(wanted, std::span(left).first(wanted.size())));
    if (next->kind == Action::Kind::get) {
      EXPECT_EQ(actions.state_of(next->target), plan->disk_states[gets++]);
    }
    actions.advance();
  }
  EXPECT_EQ(gets, plan->disk_states.size());
}

TEST(PassActions, BeginAgainFromTheStart) {
  const ChainForm form = equal_layers(8);
  PassActions actions(std::make_shared<ChainPlan>(form, schedule::every(4)->plan(form)));
  const Action first = *actions.next();
  for (int k = 0; k < 5; ++k) actions.advance();
  EXPECT_EQ(*actions.from_the_start().next(), first);
  EXPECT_NE(*actions.next(), first) << "and this one has not moved";
}

}  // namespace
}  // namespace reprise::pass_actions_test
