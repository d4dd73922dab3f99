// Plans that stay: steps whose other bytes differ, steps of several passes, and programs that settle late follow a
// plan from early on, and go on following one.
#include <gtest/gtest.h>

#include <cstdint>

#include "reprise/torch/session.h"
#include "torch/plans/made_pass.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::difference;
using testing::MadePass;
using testing::SmallTraining;
using testing::soon;
using testing::within;

at::Tensor ballast(Bytes bytes) {
  return at::zeros({bytes / 4});
}

void train(Session& session, SmallTraining& training) {
  {
    const auto step = session.step();
    EXPECT_EQ(difference(training.expected(), training.step()), "");
    training.drop_gradients();
  }
  EXPECT_LE(session.summary().peak_last_step(), session.budget());
}

// ---- other bytes that differ ----

// As T5 does: some kilobytes more or less, live when a step begins.
TEST(LastingPlans, AreFollowedWhileOtherBytesDifferFromStepToStep) {
  SmallTraining training;
  Session session(within(training.budget(0.6), soon));
  for (int i = 0; i < 3; ++i) {
    train(session, training);
    session.wait_for_plan();
  }
  std::uint32_t random = 1;
  for (int i = 0; i < 40; ++i) {
    random = random * 1664525u + 1013904223u;
    const at::Tensor other = ballast((random >> 16) % (32 << 10));
    train(session, training);
    EXPECT_TRUE(session.summary().followed_plan) << "step " << i;
  }
  EXPECT_EQ(session.summary().divergences, 0);
}

TEST(LastingPlans, AreFollowedUntilTheNextOneIsThere) {
  SmallTraining training;
  Session session(within(training.budget(0.7), soon));
  for (int i = 0; i < 4; ++i) {
    train(session, training);
    session.wait_for_plan();
  }
  EXPECT_TRUE(session.summary().followed_plan);
  const at::Tensor other = ballast((training.peak() - training.level()) / 5);
  for (int i = 0; i < 4; ++i) {  // one that was made for fewer other bytes, and then one for these
    train(session, training);
    EXPECT_TRUE(session.summary().followed_plan);
    session.wait_for_plan();
  }
  EXPECT_EQ(session.summary().divergences, 0);
}

// What is known of other bytes, without a session: one moment, and a executable that leaves ten bytes of the budget
// there.
class OtherBytesOfAPass : public ::testing::Test {
 protected:
  OtherBytesOfAPass() {
    (void)made_.run({made_.outside(8)}, 100);
    pass_ = made_.pass();
    pass_.profile.other = of(100);
    auto executable = std::make_shared<ExecutablePlan>();
    executable->budget = 1600;
    executable->added_cost = 1;
    executable->most_other = of(110);
    pass_.use(std::move(executable), {});
  }
  static std::vector<OtherBytes> of(Bytes bytes) { return {{bytes, bytes}}; }

  MadePass made_;
  RecordedPass pass_;
};

TEST_F(OtherBytesOfAPass, AreTheMostOfTheNewestSteps) {
  pass_.add_other(of(104));
  pass_.add_other(of(101));
  EXPECT_EQ(pass_.profile.other[0].between, 104);
  EXPECT_EQ(pass_.profile.other[0].within, 104);
  EXPECT_EQ(pass_.spare, 6);
  EXPECT_FALSE(pass_.outgrew_plan());
}

TEST_F(OtherBytesOfAPass, OutgrowThePlanWhenTheyAreMoreThanItAllowsFor) {
  pass_.add_other({{110, 111}});
  EXPECT_TRUE(pass_.outgrew_plan());
  EXPECT_TRUE(pass_.executable) << "it is followed until there is another";
}

TEST_F(OtherBytesOfAPass, ShrinkWhenTheyHaveReallyShrunk) {
  for (int i = 0; i < 15; ++i) pass_.add_other(of(50));
  EXPECT_EQ(pass_.profile.other[0].between, 100);
  pass_.add_other(of(50));
  EXPECT_EQ(pass_.profile.other[0].between, 50);
  EXPECT_FALSE(pass_.outgrew_plan()) << "by too little to plan again";
  for (int i = 0; i < 32; ++i) pass_.add_other(of(0));
  EXPECT_EQ(pass_.spare, 110);
  EXPECT_FALSE(pass_.outgrew_plan()) << "exactly a sixteenth of the budget";
}

TEST_F(OtherBytesOfAPass, ThatShrankByMuchWantAnotherPlan) {
  pass_.profile.other = of(900);
  auto executable = std::make_shared<ExecutablePlan>(*pass_.executable);
  executable->most_other = of(900);
  pass_.use(std::move(executable), {});
  for (int i = 0; i < 31; ++i) pass_.add_other(of(i == 0 ? 900 : 500));
  EXPECT_FALSE(pass_.outgrew_plan());
  pass_.add_other(of(500));
  EXPECT_TRUE(pass_.outgrew_plan());
}

TEST_F(OtherBytesOfAPass, OfAStepThatWasNotMeasuredDoNotCount) {
  pass_.add_other({});
  EXPECT_EQ(pass_.profile.other[0].between, 100);
}

// ---- programs that settle late ----

// From the fourth step on every step follows its plans.
template <class Step>
void expect_settled_after_three(Session& session, Step&& step) {
  for (int i = 1; i <= 8; ++i) {
    {
      const auto open = session.step();
      step(i);
    }
    const Summary summary = session.summary();
    EXPECT_LE(summary.peak_last_step(), session.budget());
    if (i > 3) EXPECT_TRUE(summary.followed_plan) << "step " << i << "\n" << summary;
    session.wait_for_plan();
  }
}

TEST(LastingPlans, SettleWithAccumulatedGradientsAndAnOptimizer) {
  SmallTraining training;
  torch::optim::Adam optimizer(training.model()->parameters(), torch::optim::AdamOptions(1e-3));
  Session session(within(training.budget(0.8), soon));
  expect_settled_after_three(session, [&](int) {
    at::Tensor sum;
    for (int i = 0; i < 3; ++i) {
      const at::Tensor loss = training.loss() / 3;
      loss.backward();
      sum = sum.defined() ? sum + loss.detach() : loss.detach();
    }
    optimizer.step();
    optimizer.zero_grad();
  });
}

TEST(LastingPlans, SettleWhereAStepHasSeveralPasses) {
  SmallTraining one, other(4, 48);
  Session session(within(one.budget(0.8), soon));
  expect_settled_after_three(session, [&](int) {
    for (SmallTraining* const training : {&one, &other, &one}) {
      training->loss().backward();
      training->drop_gradients();
    }
  });
}

// As DDP does when it builds its buckets again: the second step is another trace than the first, and those after it
// are yet another.
TEST(LastingPlans, SettleWhereTheFirstStepsAreDifferent) {
  SmallTraining training;
  Session session(within(training.budget(0.7), soon));
  expect_settled_after_three(session, [&](int step) {
    at::Tensor loss = training.loss();
    if (step == 1) loss = loss * 2;
    if (step == 2) loss = (loss * 2).exp();
    loss.backward();
    training.drop_gradients();
  });
  EXPECT_EQ(session.summary().traces, 3);
}

}  // namespace
}  // namespace reprise
