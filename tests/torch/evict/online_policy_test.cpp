// The online policy: how low it reaches without a plan.
#include <gtest/gtest.h>

#include "reprise/plan/planner.h"
#include "reprise/torch/session.h"
#include "torch/memory/meter.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

namespace nn = torch::nn;
using testing::difference;
using testing::gradients;
using testing::Snapshot;
using testing::snapshots;
using testing::within;

// Blocks that are wide inside and narrow in between, as those of attention are: what is in between is cheap to keep,
// and recomputing it takes a whole block.
class WideBlocks {
 public:
  WideBlocks() {
    torch::manual_seed(1);
    for (int i = 0; i < blocks; ++i) {
      widen_->push_back(nn::Linear(width, wide));
      narrow_->push_back(nn::Linear(wide, width));
    }
  }

  std::vector<Snapshot> step() {
    torch::manual_seed(2);
    zero_grad();
    at::Tensor x = torch::randn({rows, width});
    for (int i = 0; i < blocks; ++i) {
      const at::Tensor inside = torch::dropout(widen_[i]->as<nn::Linear>()->forward(x).softmax(-1), 0.1, true);
      x = x + narrow_[i]->as<nn::Linear>()->forward(inside);
    }
    x.pow(2).mean().backward();
    std::vector<Snapshot> results = snapshots(gradients(*widen_, gradients(*narrow_)));
    zero_grad();
    return results;
  }

 private:
  static constexpr int blocks = 6;
  static constexpr std::int64_t rows = 512, width = 16, wide = 512;

  void zero_grad() {
    widen_->zero_grad();
    narrow_->zero_grad();
  }

  nn::Sequential widen_, narrow_;
};

TEST(OnlinePolicy, KeepsABudgetNearTheFloorOfAllPlans) {
  WideBlocks training;
  const std::vector<Snapshot> expected = training.step();
  const Bytes level = meter::live();
  Bytes floor = 0;
  {
    Session session;
    auto step = session.step();
    EXPECT_EQ(difference(expected, training.step()), "");
    step.close();
    floor = floor_of(session.trace().value()).bytes;
  }
  const Bytes budget = level + (floor - level) * 105 / 100;
  Session session(within(budget));
  for (int i = 0; i < 2; ++i) {
    auto step = session.step();
    EXPECT_EQ(difference(expected, training.step()), "");
  }
  EXPECT_LE(session.summary().peak(), budget);
  EXPECT_GT(session.summary().replays, 0);
}

// Each block saves a sum that only a product of matrices brings back, and a square of it that is as cheap as the sum by
// itself.
at::Tensor gradient_of_sums_and_squares(const at::Tensor& x, const at::Tensor& weight, int blocks) {
  weight.mutable_grad().reset();
  at::Tensor h = x;
  for (int i = 0; i < blocks; ++i) h = h + at::matmul(h * h, weight);
  h.sum().backward();
  return weight.grad().clone();
}

TEST(OnlinePolicy, EvictsWhatIsCheapAlsoIfSomethingDearLooksAsCheapAndIsOlder) {
  constexpr int blocks = 8;
  const at::Tensor x = at::rand({512, 512}), weight = at::rand({512, 512}).mul_(1e-4).requires_grad_(true);
  const at::Tensor expected = gradient_of_sums_and_squares(x, weight, blocks);
  weight.mutable_grad().reset();
  const Bytes level = meter::live();
  meter::mark_peak();
  (void)gradient_of_sums_and_squares(x, weight, blocks);
  const Bytes peak = meter::peak();
  weight.mutable_grad().reset();

  Session session(within(level + (peak - level) * 7 / 10));
  for (int i = 0; i < 3; ++i) {
    auto step = session.step();
    EXPECT_TRUE(at::equal(gradient_of_sums_and_squares(x, weight, blocks), expected));
  }
  EXPECT_GT(session.summary().replays, 0);
  EXPECT_LE(session.summary().replays, blocks) << "squares only: a product needs others of its block, too";
}

}  // namespace
}  // namespace reprise
