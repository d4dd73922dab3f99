#include "chain/states_by_hand.h"

#include <gtest/gtest.h>

#include "chain/pass_fixture.h"
#include "chain/toy.h"

namespace reprise::states_by_hand_test {
namespace {

using testing::expect_chain_error;
using testing::List;
using testing::PassFixture;

TEST(StatesByHand, RecomputeBeginsWithTheNearestStateAndDisturbsNothing) {
  PassFixture all(6);
  all.context.setup.set_schedule(schedule::every(3));
  all.executor.run_forward(all.begin());
  all.take_calls();
  const ChainStatistics before = all.context.account.statistics;
  EXPECT_EQ(all.states.take(all.by_hand.recompute(1)), List(8, 1 + 2));
  EXPECT_EQ(all.take_calls(), " 0 1");
  EXPECT_EQ(all.states.take(all.by_hand.recompute(5)), List(8, 21));
  EXPECT_EQ(all.take_calls(), " 5");
  all.by_hand.save(1, all.states.put(List(8, 1)));
  EXPECT_EQ(all.states.take(all.by_hand.recompute(1)), List(8, 1 + 2));
  EXPECT_EQ(all.take_calls(), " 1");
  EXPECT_EQ(all.states.take(all.by_hand.copy(0)), List(8, 1)) << "which is there";
  expect_chain_error([&] { (void)all.by_hand.copy(1); }, "layer 1: the state after it is not remembered");
  EXPECT_EQ(all.context.account.statistics.stored, before.stored + 8);
  EXPECT_EQ(all.context.account.statistics.replays, before.replays + 4);
}

TEST(StatesByHand, OneThatIsAlsoTheSchedulesHasATierOfItsOwnKey) {
  PassFixture all(6);
  all.context.setup.set_schedule(schedule::every(3));
  all.context.tiers.set_codec(&codec("zstd"));
  all.executor.run_forward(all.begin());
  all.by_hand.save(3, all.states.put(List(8, 200)));
  EXPECT_EQ(all.context.tiers.find(3)->to_vector<std::uint8_t>(), List(8, 1 + 2 + 3));
  EXPECT_EQ(all.context.tiers.find(internal::StateTiers::saved_key(3))->to_vector<std::uint8_t>(), List(8, 200));
}

TEST(StatesByHand, BackwardTakesThemForTheStatesOfThePass) {
  PassFixture all(6);
  all.context.tiers.set_codec(&codec("zstd"));
  all.by_hand.save(0, all.states.put(List(8)));
  all.by_hand.save(4, all.states.put(List(8, 10)));
  EXPECT_TRUE(all.by_hand.is_remembered(3));
  EXPECT_FALSE(all.by_hand.is_remembered(4));
  all.by_hand.begin_backward();
  EXPECT_FALSE(all.context.held.has_saved());
  EXPECT_TRUE(all.by_hand.is_remembered(3)) << "as if forward had remembered it";
  EXPECT_EQ(all.context.tiers.find(4)->to_vector<std::uint8_t>(), List(8, 10));
}

TEST(StatesByHand, LayersAndTheMaximumAreChecked) {
  PassFixture all(2);
  all.by_hand.set_options({.maximum = 1});
  all.by_hand.save(1, all.states.put(List(8)));
  all.by_hand.save(1, all.states.put(List(4)));
  EXPECT_EQ(all.context.account.statistics.stored, 4) << "in the place of the one before";
  expect_chain_error([&] { all.by_hand.save(2, all.states.put(List(8))); }, "by_hand().maximum is 1");
  expect_chain_error([&] { (void)all.by_hand.copy(2); }, "there is no layer 2: the chain has layers 0..1");
  expect_chain_error([&] { (void)all.by_hand.recompute(-1); }, "there is no layer -1");
}

}  // namespace
}  // namespace reprise::states_by_hand_test
