#include "chain/pass_sizes.h"

#include <gtest/gtest.h>

#include "chain/pass_fixture.h"
#include "chain/toy.h"

namespace reprise::pass_sizes_test {
namespace {

using internal::ChainPass;
using internal::ChainStates;
using testing::expect_chain_error;
using testing::List;
using testing::PassFixture;

// Six layers of 8 bytes, with gradients of 4, and a budget for all of them.
struct Planned : PassFixture {
  explicit Planned(Bytes budget) : PassFixture(6) {
    ChainForm form = equal_layers(6);
    form.input = 8;
    form.gradient = 4;
    for (ChainLayerForm& layer : form.layers) layer.state = 8, layer.gradient = 4;
    context.setup.set_sizes(std::move(form), context.tiers.next_settings());
    context.setup.set_schedule(schedule::budget(budget, std::chrono::milliseconds(20)));
    const Id slot = begin();
    context.held.hold(0, slot, 8);
  }
  [[nodiscard]] ChainStates::Made make(std::size_t bytes) {
    sizes[0] = bytes;
    return context.call_forward(0, context.held.slot(0), false);
  }
};

TEST(PassSizes, WhatFitsThePlanIsAcceptedAsItIs) {
  Planned pass(1000);
  const ChainForm* const form = pass.context.pass.actions->form();
  EXPECT_TRUE(pass.pass_sizes.accept(0, pass.make(8)));
  EXPECT_TRUE(pass.pass_sizes.accept(0, pass.make(3)));
  EXPECT_EQ(pass.context.pass.actions->form(), form);
  EXPECT_EQ(pass.context.account.statistics.replays, 0u);
}

TEST(PassSizes, WhatIsLargerIsMeasuredAndPlannedAgainFromTheInput) {
  Planned pass(1000);
  pass.take_calls();
  const ChainStates::Made made = pass.make(20);
  EXPECT_FALSE(pass.pass_sizes.accept(0, made));
  EXPECT_EQ(pass.take_calls(), " 0 0 1 2 3 4 5") << "the layer that was too large, and all to measure them";
  EXPECT_EQ(pass.context.account.statistics.replays, 7u);
  const ChainForm& form = *pass.context.pass.actions->form();
  for (const ChainLayerForm& layer : form.layers) EXPECT_EQ(layer.state, 20);
  EXPECT_EQ(pass.context.setup.form().layers[5].state, 20) << "for the next pass";
  EXPECT_NE(pass.context.held.slot(0), nowhere);
  EXPECT_TRUE(pass.pass_sizes.accept(0, pass.make(20)));
}

TEST(PassSizes, NoPlanForWhatIsLargerIsAnError) {
  Planned pass(60);
  expect_chain_error([&] { (void)pass.pass_sizes.accept(0, pass.make(50)); },
                     "budget is 60 bytes: the state after layer 0 has 50 bytes, the plan was made for 8");
}

TEST(PassSizes, SizesThatDifferEveryTimeAreAnError) {
  Planned pass(100'000);
  const auto grow = [&] {
    for (std::size_t bytes = 9; bytes < 40; ++bytes) (void)pass.pass_sizes.accept(0, pass.make(bytes));
  };
  expect_chain_error(grow, "it is not the first time in this pass");
}

TEST(PassSizes, TheLimitLeavesRoomForTheGradientsOfTheNextBackward) {
  Planned pass(1000);
  const auto has_room_for = [&](Bytes bytes) {
    try {
      pass.context.account.reserve(bytes, 0);
      return true;
    } catch (const ChainError&) {
      return false;
    }
  };
  EXPECT_TRUE(has_room_for(992));
  pass.context.pass.phase = ChainPass::Phase::backward;
  pass.context.pass.position = 6;
  pass.pass_sizes.update_limit();
  EXPECT_TRUE(has_room_for(984)) << "without the gradient that comes in, and the one that goes out";
  EXPECT_FALSE(has_room_for(985));
}

TEST(PassSizes, MeasuringSetsEverySize) {
  PassFixture all(3);
  all.sizes = {{0, 5}, {1, 7}};
  const List input(2);
  all.states.lend(input);
  all.pass_sizes.measure_layers();
  const ChainForm& form = all.context.setup.form();
  EXPECT_EQ(form.input, 2);
  EXPECT_EQ(form.layers[0].state, 5);
  EXPECT_EQ(form.layers[1].state, 7);
  EXPECT_EQ(form.layers[1].gradient, 5) << "as large as the state before";
  EXPECT_EQ(form.gradient, 7);
  EXPECT_EQ(all.context.account.statistics.forward_calls, 3u);
}

}  // namespace
}  // namespace reprise::pass_sizes_test
