// The online policy: how low it reaches without a plan.
#include <gtest/gtest.h>

#include "reprise/plan/planner.h"
#include "reprise/torch/session.h"
#include "torch/meter.h"
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
// and rebuilding it takes a whole block.
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
  EXPECT_LE(session.summary().peak, budget);
  EXPECT_GT(session.summary().replays, 0);
}

}  // namespace
}  // namespace reprise
