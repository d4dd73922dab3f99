#include "chain/pass_keeper.h"

#include <gtest/gtest.h>

#include <string>

#include "chain/pass_fixture.h"
#include "chain/toy.h"
#include "support/temporary_folder.h"

namespace reprise::pass_keeper_test {
namespace {

using testing::expect_chain_error;
using testing::List;
using testing::PassFixture;
using testing::TemporaryFolder;

// One process with a pass of six layers that is kept in this folder.
struct Kept : PassFixture {
  explicit Kept(const TemporaryFolder& folder) : PassFixture(6) {
    context.setup.set_schedule(schedule::every(3));
    context.tiers.set_disk({.folder = folder.path(), .keep = true}, std::nullopt);
    context.setup.tiers_changed();
    keeper.disk_changed();
  }
  void run_forward() {
    const Id slot = begin(List(8));
    keeper.begin(slot);
    executor.run_forward(slot);
  }
  // Ends the pass as a process that ends.
  void end() {
    context.tiers.clear();
    context.held.clear();
    context.pass.end();
    keeper.stop();
  }
};

TEST(PassKeeper, KeepsWhatTheScheduleRemembersInForward) {
  const TemporaryFolder folder;
  Kept process(folder);
  EXPECT_FALSE(process.keeper.is_on());
  EXPECT_EQ(process.keeper.last_state_up_to(6), std::nullopt);
  process.run_forward();
  EXPECT_TRUE(process.keeper.is_on());
  EXPECT_EQ(process.keeper.last_state_up_to(6), 5);
  EXPECT_EQ(process.keeper.last_state_up_to(2), 0) << "the states after layers 0 and 1 were dropped";
  EXPECT_EQ(process.keeper.last_state_up_to(3), 3);
  process.end();
  EXPECT_EQ(process.keeper.last_state_up_to(6), std::nullopt);
}

TEST(PassKeeper, FindsWhereThePassGoesOn) {
  const TemporaryFolder folder;
  {
    Kept process(folder);
    process.run_forward();
    process.end();
  }
  Kept process(folder);
  expect_chain_error([&] { process.keeper.require_can_keep(); }, "resume() goes on with it, clear() removes it");
  EXPECT_EQ(process.keeper.find(0), (ChainResume{true, 5, std::nullopt}));
  EXPECT_NO_THROW(process.keeper.require_can_keep());

  process.context.pass.begin(internal::ChainPass::LoopOwner::engine, 0);
  ASSERT_TRUE(process.keeper.resume(process.states.put(List(8))));
  EXPECT_EQ(process.keeper.backward_end(), std::nullopt) << "the result was not kept";
  const Id state = process.keeper.decode_state(5);
  EXPECT_EQ(process.states[state], List(8, 1 + 2 + 3 + 4 + 5));
  EXPECT_EQ(process.keeper.last_decoded().state, 5);
}

TEST(PassKeeper, TakesTheResultAndTheLastGradient) {
  const TemporaryFolder folder;
  {
    Kept process(folder);
    process.run_forward();
    process.keeper.keep_result();
    process.keeper.keep_seed();
    process.keeper.keep_gradient(5);
    process.keeper.keep_gradient(4);
    process.keeper.keep_gradient(2);  // whose state is not kept
    process.keeper.finish();
    EXPECT_EQ(process.keeper.last_state_up_to(6), 3) << "states from the last gradient on are not needed";
    process.end();
  }
  Kept process(folder);
  EXPECT_EQ(process.keeper.find(0), (ChainResume{true, 6, 4}));
  process.context.pass.begin(internal::ChainPass::LoopOwner::engine, 0);
  ASSERT_TRUE(process.keeper.resume(process.states.put(List(8))));
  EXPECT_EQ(process.keeper.backward_end(), 4);
  EXPECT_EQ(process.states.take(process.keeper.decode_result()), List(8, 21));
  List other(8, 9);
  process.states.work_on(other);
  expect_chain_error([&] { process.keeper.keep_seed(); }, "backward begins with another gradient");
}

TEST(PassKeeper, RefusesAnotherInputAndAnotherChain) {
  const TemporaryFolder folder;
  {
    Kept process(folder);
    process.run_forward();
    process.end();
  }
  Kept process(folder);
  expect_chain_error([&] { (void)process.keeper.find(7); }, "its fingerprint is 0, not 7");
  EXPECT_FALSE(process.keeper.has_found());
  EXPECT_TRUE(process.keeper.find(0).found);
  process.context.pass.begin(internal::ChainPass::LoopOwner::engine, 0);
  expect_chain_error([&] { (void)process.keeper.resume(process.states.put(List(8, 1))); }, "another input");
  process.keeper.clear();
  EXPECT_FALSE(process.keeper.find(0).found);
}

TEST(PassKeeper, AStateThatIsNotMadeAgainRemovesThePass) {
  const TemporaryFolder folder;
  Kept process(folder);
  process.run_forward();
  const Id same = process.keeper.decode_state(3);
  const internal::PassKeeper::Decoded kept = process.keeper.last_decoded();
  EXPECT_NO_THROW(process.keeper.require_same(kept, same, 0));
  const Id shorter = process.states.put(List(7));
  expect_chain_error([&] { process.keeper.require_same(kept, shorter, 0); },
                     "state 3 as it was kept is not what forward makes of state 0, so the pass was removed");
  EXPECT_EQ(process.keeper.last_state_up_to(6), std::nullopt);
}

}  // namespace
}  // namespace reprise::pass_keeper_test
