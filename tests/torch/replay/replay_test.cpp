// Replays: how often operators run again when nobody has planned it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>

#include "reprise/torch/session.h"
#include "torch/memory/meter.h"

namespace reprise {
namespace {

using at::Tensor;

// Evicts the results of these operators as soon as they are saved.
SessionOptions evicting(std::string name) {
  SessionOptions options;
  options.budget = Bytes{1} << 30;
  options.planning_time = std::chrono::milliseconds(0);
  options.policy = [name = std::move(name)](const PolicyOperator& op) {
    return op.plain_name() == name ? Choice::evict : Choice::automatic;
  };
  return options;
}

// A product in four parts, as recurrent cells have it.
struct Gates {
  const Tensor x = at::randn({256, 256}), weight = at::randn({256, 1024}).requires_grad_(true);

  Tensor loss() const {
    Tensor sum;
    for (const Tensor& part : at::matmul(x, weight).chunk(4, 1)) {
      const Tensor of_part = at::sigmoid(part).sum();
      sum = sum.defined() ? sum + of_part : of_part;
    }
    return sum;
  }
  Tensor gradient() const {
    weight.mutable_grad().reset();
    loss().backward();
    return weight.grad();
  }
};

TEST(Replays, MakeADearValueOnceForAllThatAreMadeOfIt) {
  const Gates gates;
  const Tensor expected = gates.gradient();
  Session session(evicting("aten::sigmoid"));
  {
    const auto step = session.step();
    EXPECT_TRUE(at::equal(gates.gradient(), expected));
  }
  const Summary summary = session.summary();
  EXPECT_EQ(summary.verified, 4);
  EXPECT_EQ(summary.replays, 5) << "the product once, and each part once";
}

// With everything evicted each value is recomputed from the leaves: that is what the check is for.
TEST(Replays, MakeEveryValueForItselfWhereEverythingIsEvicted) {
  const Gates gates;
  const Tensor expected = gates.gradient();
  SessionOptions options;
  options.evict_everything = true;
  Session session(options);
  {
    const auto step = session.step();
    EXPECT_TRUE(at::equal(gates.gradient(), expected));
  }
  EXPECT_EQ(session.summary().replays, 8);
}

// Each product needs the one before it and a gate of its own. The products are evicted, and the last one is asked for
// first, when the gates fill the budget: all of them are needed on the way back to the first one.
TEST(Replays, OfALongChainPinNoMoreThanOneLinkNeeds) {
  constexpr int links = 12;
  constexpr std::int64_t width = 256;
  const Tensor start = at::rand({width, width}).requires_grad_(true), others = at::rand({links, width, width}) / width;
  const auto gradient = [&] {
    start.mutable_grad().reset();
    Tensor product = start;
    for (int k = 0; k < links; ++k) product = at::matmul(start, others[k]) * product;
    product.sum().backward();
    return start.grad();
  };
  const Tensor expected = gradient();
  SessionOptions options = evicting("aten::mul");
  options.budget = internal::meter::live() + 10 * width * width * Bytes{sizeof(float)};
  Session session(options);
  {
    const auto step = session.step();
    EXPECT_TRUE(at::equal(gradient(), expected));
  }
  EXPECT_LE(session.summary().peak(), session.budget());
}

}  // namespace
}  // namespace reprise
