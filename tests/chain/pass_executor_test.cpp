#include "chain/pass_executor.h"

#include <gtest/gtest.h>

#include "chain/pass_fixture.h"

namespace reprise::pass_executor_test {
namespace {

using internal::ChainPass;
using testing::List;
using testing::PassFixture;

// With an observer, so that every layer is an action of its own, or without.
class PassExecutor : public ::testing::TestWithParam<bool> {
 protected:
  PassFixture pass_{6};
  Id begin(SchedulePointer schedule) {
    if (GetParam()) pass_.context.observer = [](const ChainProgress&) {};
    pass_.context.setup.set_schedule(std::move(schedule));
    return pass_.begin();
  }
  [[nodiscard]] bool holds(Id state) const { return pass_.context.held.slot(state) != nowhere; }
};

TEST_P(PassExecutor, ForwardRunsEveryLayerOnceAndHoldsWhatTheScheduleRemembers) {
  pass_.executor.run_forward(begin(schedule::every(3)));
  EXPECT_EQ(pass_.take_calls(), " 0 1 2 3 4 5");
  EXPECT_EQ(pass_.context.pass.phase, ChainPass::Phase::backward);
  EXPECT_EQ(pass_.context.pass.position, 6);
  for (const Id state : {0, 3, 4, 5}) EXPECT_TRUE(holds(state)) << state;
  for (const Id state : {1, 2, 6}) EXPECT_FALSE(holds(state)) << state;
  const Id result = pass_.context.pass.take_result();
  EXPECT_EQ(pass_.states.take(result), List(8, 1 + 2 + 3 + 4 + 5 + 6));
}

TEST_P(PassExecutor, BackwardReplaysBeforeALayerAndDropsRightAfterIt) {
  pass_.executor.run_forward(begin(schedule::every(3)));
  pass_.take_calls();
  const char* const expected[] = {" -5", " -4", " -3", " 0 1 -2", " -1", " -0"};
  for (Id layer = 5; layer >= 0; --layer) {
    pass_.executor.run_next_backward();
    EXPECT_EQ(pass_.context.pass.position, layer);
    if (GetParam()) {
      EXPECT_EQ(pass_.take_calls(), expected[5 - layer]);
      EXPECT_FALSE(holds(layer)) << layer;
    }
  }
  if (!GetParam()) EXPECT_EQ(pass_.take_calls(), " -5 -4 -3 0 1 -2 -1 -0");
  EXPECT_EQ(pass_.context.account.statistics.stored, 0);
}

TEST_P(PassExecutor, AnObserverThatComesLaterSeesTheLayersThatAreLeft) {
  pass_.executor.run_forward(begin(schedule::every(3)));
  std::vector<Id> seen;
  pass_.context.observer = [&](const ChainProgress& progress) { seen.push_back(progress.position); };
  pass_.executor.observer_changed();
  pass_.executor.run_backward();
  EXPECT_EQ(seen, (std::vector<Id>{5, 4, 3, 0, 1, 2, 1, 0}));
}

INSTANTIATE_TEST_SUITE_P(Observed, PassExecutor, ::testing::Bool());

}  // namespace
}  // namespace reprise::pass_executor_test
