#include "plan/chains/chain_shape.h"

#include <gtest/gtest.h>

#include "support/chains.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::SmallTrace;

ChainShape coarse(const Trace& trace) {
  return coarse_chain_of(trace, Timeline(trace));
}
ChainShape strict(const Trace& trace) {
  return chain_of(trace, Timeline(trace), "chain");
}

TEST(ChainShape, SeesTheLayersOfAChainWithOperatorsOrEventsAsBackward) {
  for (const bool events : {false, true}) {
    testing::ChainForm form = testing::equal_layers(5, {.tape = 2, .needs_output = true});
    form.events = events;
    form.parameters = 7;
    const ChainShape chain = strict(testing::chain_trace(form));
    ASSERT_EQ(chain.layers.size(), 5u);
    EXPECT_EQ(chain.first_backward, 5);
    EXPECT_EQ(chain.input, 0);
    for (Id k = 0; k < 5; ++k) {
      const LayerShape& layer = chain.layers[k];
      EXPECT_EQ(layer.first, k);
      EXPECT_EQ(layer.end, k + 1);
      EXPECT_EQ(layer.backward_first, 9 - k);
      EXPECT_EQ(layer.backward_end, 10 - k);
      EXPECT_EQ(layer.state.has_value(), k < 4);
      EXPECT_EQ(layer.tape.size(), k < 4 ? 1u : 2u);  // the last state crosses into no layer
      EXPECT_TRUE(layer.needs_input);
      EXPECT_EQ(layer.needs_state, k < 4);
    }
  }
}

TEST(ChainShape, JoinsALayerInPlaceWithTheOneBeforeIt) {
  testing::ChainForm form = testing::equal_layers(4);
  form.events = true;
  Trace trace = testing::chain_trace(form);
  trace.values[3].takes_over = 2;  // layer 3 overwrites state 2
  trace.moments[5].needs = {3};
  const ChainShape chain = strict(trace);
  ASSERT_EQ(chain.layers.size(), 3u);
  EXPECT_EQ(chain.layers[1].first, 1);
  EXPECT_EQ(chain.layers[1].end, 3);
  EXPECT_EQ(chain.layers[1].state, 3);
}

// Blocks of x -> a -> b -> x + b, each of whose events needs a and x.
Trace residual_blocks(int blocks) {
  SmallTrace made;
  Id x = made.outside(4);
  std::vector<std::vector<Id>> needs;
  for (int i = 0; i < blocks; ++i) {
    const Id a = made.trace.value_count();
    made.run({x}, {4});
    made.run({a}, {4});
    made.run({x, a + 1}, {4});
    needs.push_back({x, a});
    x = a + 2;
  }
  for (int i = blocks - 1; i >= 0; --i) made.event(needs[i]);
  return made.trace;
}

TEST(ChainShape, CutsATrainingStepWhereOneValueCrosses) {
  const ChainShape chain = coarse(residual_blocks(4));
  ASSERT_EQ(chain.layers.size(), 4u);
  for (Id k = 0; k < 4; ++k) {
    EXPECT_EQ(chain.layers[k].first, 3 * k);
    EXPECT_EQ(chain.layers[k].end, 3 * k + 3);
    EXPECT_EQ(chain.layers[k].tape, (std::vector<Id>{3 * k + 1}));
    EXPECT_TRUE(chain.layers[k].needs_input);
    EXPECT_FALSE(chain.layers[k].needs_state);
  }
}

TEST(ChainShape, KeepsWhatBackwardNeedsOutOfOrder) {
  Trace trace = residual_blocks(4);
  trace.moments.back().needs.push_back(7);  // the last event needs something of the third block
  const ChainShape chain = coarse(trace);
  EXPECT_EQ(chain.layers.size(), 4u);
  EXPECT_TRUE(chain.kept[7]);
  EXPECT_FALSE(chain.kept[4]);
}

TEST(ChainShape, JoinsNeighboursToASmallerNumberOfLayers) {
  const Trace trace = residual_blocks(9);
  const Timeline timeline(trace);
  const ChainShape chain = coarse_chain_of(trace, timeline);
  for (std::size_t layers = 1; layers <= 12; ++layers) {
    const ChainShape smaller = joined(trace, timeline, chain, layers);
    EXPECT_LE(smaller.layers.size(), std::max<std::size_t>(layers, 1));
    EXPECT_EQ(smaller.layers.front().first, 0);
    EXPECT_EQ(smaller.layers.back().end, 27);
  }
  EXPECT_EQ(joined(trace, timeline, chain, 3).layers.size(), 3u);
}

TEST(ChainShape, OfATraceWithoutForwardIsEmpty) {
  SmallTrace made;
  made.event({made.outside(1)});
  EXPECT_TRUE(coarse(made.trace).layers.empty());
  EXPECT_TRUE(strict(made.trace).layers.empty());
  EXPECT_TRUE(strict(Trace{}).layers.empty());
}

}  // namespace
}  // namespace reprise
