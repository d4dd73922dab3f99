#include "chain/chain_pass.h"

#include <gtest/gtest.h>

#include "chain/pass_fixture.h"

namespace reprise::chain_pass_test {
namespace {

using internal::ChainPass;
using testing::PassFixture;
using Phase = ChainPass::Phase;

TEST(ChainPass, GoesThroughItsPhases) {
  PassFixture all(4);
  ChainPass& pass = all.context.pass;
  EXPECT_EQ(pass.phase, Phase::idle);

  const Id input = all.begin();
  EXPECT_EQ(pass.phase, Phase::forward);
  EXPECT_EQ(pass.number, 1u);
  EXPECT_FALSE(pass.is_replay(0));
  all.executor.run_forward(input);
  EXPECT_EQ(pass.phase, Phase::backward);
  EXPECT_EQ(pass.position, 4);
  EXPECT_TRUE(pass.is_replay(3));

  pass.has_run_before = true;
  pass.begin_part(2);
  EXPECT_EQ(pass.phase, Phase::forward) << "of the part before";
  EXPECT_EQ(pass.position, 0);
  EXPECT_EQ(pass.state_after(2), 1);
  EXPECT_EQ(pass.state_after(0), -1) << "before the part";
  EXPECT_TRUE(pass.has_run_before);

  pass.end();
  EXPECT_EQ(pass.phase, Phase::idle);
  EXPECT_EQ(pass.number, 1u);
  EXPECT_TRUE(pass.actions.has_value()) << "whose plan may be asked for";
  EXPECT_EQ(pass.first, 0);
  EXPECT_FALSE(pass.has_run_before);

  pass.begin(ChainPass::LoopOwner::caller, 3);
  EXPECT_EQ(pass.number, 2u);
  EXPECT_EQ(pass.start, 3);
  EXPECT_EQ(pass.first, 3);
  EXPECT_FALSE(pass.actions.has_value());
}

}  // namespace
}  // namespace reprise::chain_pass_test
