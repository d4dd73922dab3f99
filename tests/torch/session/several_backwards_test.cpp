// Plans for steps with more than one backward: on one graph, one after the other, and one that is differentiated again.
#include <gtest/gtest.h>

#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::difference;
using testing::gradients;
using testing::meter_here;
using testing::SmallTraining;
using testing::Snapshot;
using testing::snapshots;
using testing::within;

class SeveralBackwards : public ::testing::Test {
 protected:
  // Runs steps under a share of what a plain one needs until one has followed its plan. All have the bits of the plain
  // one, and none passes the budget.
  void expect_followed(const std::function<testing::Tensors()>& step, double share) {
    const auto run = [&] {
      training_.drop_gradients();
      torch::manual_seed(3);
      std::vector<Snapshot> results = snapshots(step());
      training_.drop_gradients();
      return results;
    };
    const std::vector<Snapshot> expected = run();
    const Bytes level = meter_here().live();
    meter_here().mark_peak();
    ASSERT_EQ(difference(expected, run()), "") << "plainly";
    const Bytes budget = level + static_cast<Bytes>(share * static_cast<double>(meter_here().peak() - level));
    Session session(within(budget, std::chrono::milliseconds(300)));
    int followed = 0;
    for (int i = 0; i < 6; ++i) {
      {
        auto open = session.step();
        ASSERT_EQ(difference(expected, run()), "") << "step " << i;
      }
      ASSERT_LE(session.summary().peak_last_step(), budget);
      followed += session.summary().followed_plan;
      session.wait_for_plan();
    }
    EXPECT_GE(followed, 2) << session.summary();
    EXPECT_GT(session.summary().replays, 0) << "there was something to recompute";
  }

  [[nodiscard]] at::Tensor forward(const at::Tensor& x) { return training_.model()->forward(x); }

  SmallTraining training_;
};

TEST_F(SeveralBackwards, OnOneGraphFollowTheirPlan) {
  expect_followed(
      [&] {
        const at::Tensor y = forward(torch::randn({256, 64}));
        y.pow(2).mean().backward({}, /*retain_graph=*/true);
        y.exp().mean().backward();
        return gradients(*training_.model(), {y.detach()});
      },
      0.7);
}

TEST_F(SeveralBackwards, OneAfterTheOtherFollowTheirPlans) {
  expect_followed(
      [&] {
        forward(torch::randn({256, 64})).pow(2).mean().backward();
        forward(torch::randn({256, 64})).exp().mean().backward();
        return gradients(*training_.model());
      },
      0.7);
}

TEST_F(SeveralBackwards, OfWhichOneIsDifferentiatedAgainFollowTheirPlan) {
  expect_followed(
      [&] {
        const at::Tensor x = torch::randn({256, 64}, torch::requires_grad());
        const at::Tensor y = forward(x);
        const auto slope = torch::autograd::grad({y.sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
        (y.pow(2).mean() + slope[0].pow(2).sum()).backward();
        return gradients(*training_.model(), {slope[0].detach()});
      },
      0.7);
}

}  // namespace
}  // namespace reprise
