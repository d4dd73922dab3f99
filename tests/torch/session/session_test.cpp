// A session and its steps: budgets that bind, that change, that cannot be; sessions switched off, closed, destroyed.
#include "reprise/torch/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <stdexcept>

#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::difference;
using testing::meter_here;
using testing::options_here;
using testing::SmallTraining;
using testing::within;

TEST(Session, WithoutALimitEvictsNothingAndCostsNoBytes) {
  SmallTraining training;
  const Bytes peak = training.peak();
  Session session(options_here());
  EXPECT_EQ(session.budget(), no_limit);
  {
    auto step = session.step();
    EXPECT_EQ(difference(training.expected(), training.step()), "");
  }
  const Summary summary = session.summary();
  EXPECT_EQ(summary.steps, 1);
  EXPECT_EQ(summary.budget(), std::nullopt);
  EXPECT_EQ(summary.replays, 0);
  EXPECT_EQ(summary.evicted_last_step(), 0);
  EXPECT_EQ(summary.peak(), peak);
}

TEST(Session, KeepsLiveBytesWithinItsBudgetAndGradientsToTheBit) {
  SmallTraining training;
  for (const double share : {0.9, 0.7, 0.5}) {
    SCOPED_TRACE(share);
    Session session(within(training.budget(share)));
    meter_here().mark_peak();
    {
      auto step = session.step();
      EXPECT_EQ(difference(training.expected(), training.step()), "");
      EXPECT_LE(meter_here().peak(), session.budget());
    }
    const Summary summary = session.summary();
    EXPECT_LE(summary.peak_last_step(), session.budget());
    EXPECT_GE(summary.peak_last_step(), session.budget() / 2) << "the peak is measured";
    EXPECT_GT(summary.evicted_last_step() + summary.packed_last_step, 0);
    training.drop_gradients();
  }
}

TEST(Session, LeavesNothingBehind) {
  SmallTraining training;
  (void)training.peak();
  const Bytes before = meter_here().live();
  {
    Session session(within(training.budget(0.6)));
    for (int i = 0; i < 3; ++i) {
      {
        auto step = session.step();
        (void)training.step();
        training.drop_gradients();
      }
      EXPECT_EQ(meter_here().live(), before) << "after step " << i;
    }
  }
  EXPECT_EQ(meter_here().live(), before);
}

TEST(Session, LimitsNothingBetweenSteps) {
  SmallTraining training;
  Session session(within(training.budget(0.6)));
  { auto step = session.step(); }
  EXPECT_EQ(difference(training.expected(), training.step()), "");
  auto step = session.step();
  step.close();
  step.close();
  EXPECT_NO_THROW((void)training.step());
}

TEST(Session, HasNoNegativeBudget) {
  EXPECT_THROW(Session(within(-1)), BadOption);
  Session session(within(1_GiB));
  EXPECT_THROW(session.budget(-5), BadOption);
  EXPECT_EQ(session.budget(), 1_GiB);
  EXPECT_THROW(Session(within(1_GiB, std::chrono::milliseconds(-1))), BadOption);
  for (const double share : {-0.1, std::nan("")}) EXPECT_THROW(Session({.planning_share = share}), BadOption);
}

TEST(Session, HasTheCpuAsADeviceByItsName) {
  REPRISE_ONLY_ON_CPU("it names the CPU");
  SmallTraining training;
  const Bytes budget = training.budget(0.6);
  SessionOptions by_device = within(budget), by_budgets = within(no_limit);
  by_device.device = "cpu";
  by_budgets.budgets = {{"cpu", budget}};
  for (const SessionOptions& options : {by_device, by_budgets}) {
    Session session(options);
    {
      auto step = session.step();
      EXPECT_EQ(difference(training.expected(), training.step()), "");
    }
    const Summary summary = session.summary();
    EXPECT_EQ(session.budget(), budget);
    EXPECT_EQ(summary.devices.front().device, "cpu");
    EXPECT_LE(summary.peak(), budget);
    EXPECT_GT(summary.evicted_last_step(), 0);
    ASSERT_EQ(summary.devices.size(), 1);
    EXPECT_EQ(summary.devices[0].peak, summary.peak());
    session.budget("cpu", 5 * budget);
    EXPECT_EQ(session.budget(), 5 * budget);
  }
}

TEST(Session, RefusesDevicesThatCannotBe) {
  REPRISE_ONLY_ON_CPU("it names the CPU");
  const auto with = [](std::vector<DeviceBudget> budgets) {
    SessionOptions options;
    options.budgets = std::move(budgets);
    return options;
  };
  for (const auto& budgets : std::vector<std::vector<DeviceBudget>>{
           {{"cpu", 1_GiB}, {"cpu", 2_GiB}}, {{"cpu", -1}}, {{"", 1_GiB}}, {{"cpu"}, {"nonsense"}}, {{"cuda:0"}}}) {
    EXPECT_THROW(Session(with(budgets)), BadOption) << budgets.front().device;
  }
  SessionOptions both = with({{"cpu", 1_GiB}});
  both.budget = 2_GiB;
  EXPECT_THROW(Session{both}, BadOption);
  both = with({{"cpu", 1_GiB}});
  both.device = "cpu";
  EXPECT_THROW(Session{both}, BadOption);
  Session session(options_here());
  EXPECT_THROW(session.budget("meta", 5), BadOption);
}

TEST(Session, MeasuresAShareByTwoPlainStepsWhoseWorkIsDone) {
  SmallTraining training;
  SessionOptions options = options_here();
  options.budget = "1GiB";
  EXPECT_EQ(Session(options).budget(), 1_GiB);
  options.budget = "0.7x";
  Session session(options);
  EXPECT_EQ(session.budget(), no_limit);
  Bytes plain = 0;
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    {
      auto step = session.step();
      EXPECT_EQ(difference(training.expected(), training.step()), "");
    }
    if (i == 0) {
      const auto fails = [&] {
        const auto step = session.step();
        throw std::runtime_error("");
      };
      EXPECT_THROW(fails(), std::runtime_error);
      EXPECT_EQ(session.budget(), no_limit) << "a step that fails measures nothing";
    }
    if (i == 1) plain = session.summary().peak_last_step();
    if (i >= 1) EXPECT_EQ(session.budget(), Budget("0.7x").bytes_at(plain));
    if (i >= 2) EXPECT_LE(session.summary().peak_last_step(), session.budget());
    training.drop_gradients();
  }
  EXPECT_GT(session.summary().evicted_last_step() + session.summary().packed_last_step, 0);
  session.budget("0.9x");
  EXPECT_EQ(session.budget(), no_limit);
  EXPECT_THROW(session.budget("much"), BadOption);
}

TEST(Session, WithABudgetOfZeroRefusesEveryAllocationInAStep) {
  Session session(within(0));
  {
    auto step = session.step();
    EXPECT_THROW((void)torch::empty({1}), BudgetError);
    EXPECT_NO_THROW((void)torch::empty({0}));
  }
  EXPECT_NO_THROW((void)torch::empty({1}));
}

TEST(Session, WithABudgetBelowWhatIsLiveRefusesEveryAllocationInAStep) {
  SmallTraining training;
  Session session(within(meter_here().live() - 1));
  {
    auto step = session.step();
    const auto error = testing::thrown_by<BudgetError>([&] { (void)training.step(); });
    ASSERT_TRUE(error.has_value());
    EXPECT_GE(error->facts().live, session.budget());
  }
  session.budget(no_limit);
  auto step = session.step();
  EXPECT_EQ(difference(training.expected(), training.step()), "");
}

TEST(Session, TakesANewBudgetWithTheNextStep) {
  SmallTraining training;
  Session session(within(training.budget(0.7)));
  {
    auto step = session.step();
    session.budget(0);
    EXPECT_EQ(session.budget(), 0);
    EXPECT_EQ(difference(training.expected(), training.step()), "");
  }
  {
    auto step = session.step();
    EXPECT_THROW((void)training.step(), BudgetError);
  }
  for (const double share : {0.6, 0.8, 0.7, 2.0}) {
    session.budget(training.budget(share));
    auto step = session.step();
    EXPECT_EQ(difference(training.expected(), training.step()), "") << share;
    EXPECT_LE(session.summary().peak_last_step(), session.budget());
  }
}

TEST(Session, IsSwitchedOffAndOnWithTheNextStep) {
  SmallTraining training;
  Session session(within(0));
  session.enabled(false);
  EXPECT_FALSE(session.enabled());
  {
    auto step = session.step();
    session.enabled(true);
    EXPECT_EQ(difference(training.expected(), training.step()), "");
  }
  EXPECT_EQ(session.summary().steps, 0) << "it was not recorded";
  auto step = session.step();
  EXPECT_THROW((void)training.step(), BudgetError);
}

TEST(Session, HasOneStepAtATimeOnAThread) {
  Session session(options_here()), other(options_here());
  std::optional<Step> step = session.step();
  EXPECT_THROW((void)session.step(), BadOption);
  EXPECT_THROW((void)other.step(), BadOption);
  Step moved = std::move(*step);
  step.reset();
  EXPECT_THROW((void)session.step(), BadOption) << "the step that was moved is open still";
  moved.close();
  EXPECT_NO_THROW((void)session.step());
}

TEST(Session, TakesTurnsWithAnother) {
  SmallTraining one, two(3, 48, 200);
  SessionOptions options = within(two.budget(0.8));
  options.name = "second";
  Session first(within(one.budget(0.7))), second(options);
  for (int i = 0; i < 3; ++i) {
    {
      auto step = first.step();
      EXPECT_EQ(difference(one.expected(), one.step()), "");
      one.drop_gradients();
    }
    auto step = second.step();
    EXPECT_EQ(difference(two.expected(), two.step()), "");
    two.drop_gradients();
  }
  EXPECT_EQ(first.summary().steps, 3);
  EXPECT_EQ(second.summary().name, "second");
}

TEST(Session, MayBeGoneBeforeTheBackwardOfItsGraph) {
  SmallTraining training;
  const auto& expected = training.expected();
  const Bytes before = meter_here().live();
  {
    at::Tensor loss;
    {
      Session session(within(training.budget(0.7)));
      auto step = session.step();
      loss = training.loss();
    }
    loss.backward();
    auto results = testing::snapshots(testing::gradients(*training.model(), {loss}));
    results.push_back(testing::generator_snapshot());
    EXPECT_EQ(difference(expected, results), "");
  }
  training.drop_gradients();
  EXPECT_EQ(meter_here().live(), before);
}

TEST(Session, MayBeGoneBeforeItsStepEnds) {
  SmallTraining training;
  std::optional<Step> step;
  {
    Session session(within(training.budget(0.7)));
    step = session.step();
  }
  EXPECT_EQ(difference(training.expected(), training.step()), "");
}

TEST(Session, GoesOnAfterTheUsersCodeThrewInAStep) {
  SmallTraining training;
  Session session(within(training.budget(0.7)));
  const Bytes before = meter_here().live();
  for (int i = 0; i < 3; ++i) {
    try {
      auto step = session.step();
      const auto loss = training.loss();
      throw std::runtime_error("a bad batch");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(meter_here().live(), before);
    auto step = session.step();
    EXPECT_EQ(difference(training.expected(), training.step()), "");
    training.drop_gradients();
  }
}

TEST(Session, LetsTensorsOfOtherDevicesBe) {
  Session session(testing::evicting_everything());
  {
    auto step = session.step();
    const auto options = torch::TensorOptions().device(at::kMeta);
    const auto weight = torch::empty({256, 256}, options).requires_grad_();
    const auto x = torch::empty({512, 256}, options);
    torch::tanh(torch::gelu(x.matmul(weight))).sum().backward();
    EXPECT_EQ(weight.grad().sizes(), weight.sizes());
  }
  EXPECT_GT(session.summary().other_devices, 0);
}

}  // namespace
}  // namespace reprise
