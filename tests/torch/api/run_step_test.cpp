// Session::run: a step that does not fit without a plan is planned without its memory, and run again.
#include <gtest/gtest.h>

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
using testing::thrown_by;
using testing::within;

// Blocks around which their input is carried on, with statistics and masks.
class ResidualBlocks {
 public:
  ResidualBlocks() {
    torch::manual_seed(1);
    for (int i = 0; i < blocks; ++i) {
      layers_->push_back(nn::Linear(width, width));
      layers_->push_back(nn::BatchNorm1d(width));
    }
    input_ = torch::randn({rows, width});
    train();  // and everything that LibTorch makes on first use
    begin_anew();
  }

  // Forward and backward, on the statistics and the generator that there are.
  void train() {
    at::Tensor x = input_;
    for (int i = 0; i < blocks; ++i) {
      const at::Tensor y = layers_[2 * i]->as<nn::Linear>()->forward(x);
      x = x + torch::dropout(layers_[2 * i + 1]->as<nn::BatchNorm1d>()->forward(y).tanh(), 0.1, true);
      if (i == blocks / 2 && calls_ == does_not_fit_) need_too_much(x);
    }
    ++calls_;
    x.pow(2).mean().backward();
  }
  // One of the next calls needs more than any budget in the middle of its backward, where half of the gradients are
  // there. In the copy of the process, and when it is called again, it does not.
  void call_that_does_not_fit(int call) { does_not_fit_ = call; }

  // Everything that a step leaves behind.
  [[nodiscard]] std::vector<Snapshot> results() const {
    std::vector<Snapshot> all = snapshots(gradients(*layers_));
    all.push_back(testing::generator_snapshot());
    return all;
  }
  void begin_anew() {
    torch::manual_seed(3);
    layers_->zero_grad();
    const torch::NoGradGuard no_gradients;
    for (at::Tensor& statistic : layers_->buffers()) statistic.fill_(1);
    calls_ = 0;
  }

  [[nodiscard]] int calls() const { return calls_; }
  [[nodiscard]] const at::Tensor& input() const { return input_; }

 private:
  static constexpr int blocks = 8;
  static constexpr std::int64_t rows = 2048, width = 16;

  static void need_too_much(const at::Tensor& x) {
    x.register_hook([](const at::Tensor&) { (void)torch::empty({std::int64_t{1} << 40}, torch::kByte); });
  }

  nn::Sequential layers_;
  at::Tensor input_;
  int calls_ = 0, does_not_fit_ = -1;
};

constexpr std::chrono::milliseconds planning_time{100};

class RunStep : public ::testing::Test {
 protected:
  RunStep() {
    level_ = meter::live();
    meter::mark_peak();
    training_.train();
    peak_ = meter::peak();
    training_.begin_anew();
  }

  // level + share * (plain peak - level).
  [[nodiscard]] Bytes budget(double share = 0.6) const {
    return level_ + static_cast<Bytes>(share * static_cast<double>(peak_ - level_));
  }
  // What a plain step of this function leaves behind; then all is as it was.
  std::vector<Snapshot> expected_of(const std::function<void()>& train) {
    training_.begin_anew();
    train();
    std::vector<Snapshot> all = training_.results();
    training_.begin_anew();
    return all;
  }

  ResidualBlocks training_;
  Bytes level_ = 0, peak_ = 0;
};

TEST_F(RunStep, ThatFitsRunsOnce) {
  const auto expected = expected_of([&] { training_.train(); });
  Session session(within(budget(2), planning_time));
  session.run([&] { training_.train(); });
  EXPECT_EQ(difference(expected, training_.results()), "");
  EXPECT_EQ(training_.calls(), 1);
}

TEST_F(RunStep, ThatDoesNotFitIsPlannedAndRunAgain) {
  const auto expected = expected_of([&] { training_.train(); });
  Session session(within(budget(), planning_time));
  training_.call_that_does_not_fit(0);
  session.run([&] { training_.train(); });
  EXPECT_EQ(training_.calls(), 2);
  EXPECT_EQ(difference(expected, training_.results()), "") << "statistics, masks and gradients of one step";
  EXPECT_TRUE(session.summary().followed_plan) << "though nobody had seen it";
  EXPECT_GT(session.summary().replays, 0);
  EXPECT_LE(session.summary().peak(), budget());
  EXPECT_GT(session.summary().planning_seconds, 0);
  training_.call_that_does_not_fit(-1);
  for (int i = 0; i < 2; ++i) {
    training_.begin_anew();
    session.run([&] { training_.train(); });
    EXPECT_EQ(training_.calls(), 1) << "the plan is known now";
    EXPECT_EQ(difference(expected, training_.results()), "");
    EXPECT_TRUE(session.summary().followed_plan);
  }
}

TEST_F(RunStep, MayBeSeveralPasses) {
  const auto expected = expected_of([&] {
    training_.train();
    training_.train();
  });
  Session session(within(budget(), planning_time));
  training_.call_that_does_not_fit(1);
  session.run([&] {
    training_.train();
    training_.train();
  });
  EXPECT_EQ(training_.calls(), 4) << "the second of the two did not fit";
  EXPECT_EQ(difference(expected, training_.results()), "");
  EXPECT_LE(session.summary().peak(), budget());
}

TEST_F(RunStep, PutsBackWhatIsWrittenInPlaceAndDrawnFromGenerators) {
  at::Generator generator = at::detail::createCPUGenerator(7);
  at::Tensor count = torch::zeros({4}), noise = torch::zeros({8});
  const auto train = [&] {
    {
      const torch::NoGradGuard no_gradients;
      count.add_(1);
      noise.normal_(0, 1, generator);
    }
    training_.train();
  };
  const auto expected = expected_of(train);
  const at::Tensor expected_noise = noise.clone();
  generator.set_current_seed(7);
  count.zero_();
  Session session(within(budget(), planning_time));
  training_.call_that_does_not_fit(0);
  session.run(train);
  EXPECT_EQ(training_.calls(), 2);
  EXPECT_EQ(difference(expected, training_.results()), "");
  EXPECT_TRUE(torch::equal(count, torch::ones({4})));
  EXPECT_TRUE(torch::equal(noise, expected_noise));
}

TEST_F(RunStep, AddsToGradientsThatAreThereOnce) {
  const auto expected = expected_of([&] {
    training_.train();
    training_.train();
  });
  training_.train();
  Session session(within(budget(0.8), planning_time));
  training_.call_that_does_not_fit(1);
  session.run([&] { training_.train(); });
  EXPECT_EQ(training_.calls(), 3);
  EXPECT_EQ(difference(expected, training_.results()), "");
}

// ---- what is not run again -----------------------------------------------------------------------------------------

std::optional<BudgetError> refusal(Session& session, const std::function<void()>& train) {
  return thrown_by<BudgetError>([&] { session.run(train); });
}

::testing::AssertionResult has(const std::optional<BudgetError>& error, const std::string& words) {
  if (!error) return ::testing::AssertionFailure() << "nothing was thrown";
  return ::testing::AssertionResult(std::string(error->what()).find(words) != std::string::npos) << error->what();
}

TEST_F(RunStep, ThatNoPlanKeepsSaysWhichBudgetWillDoAndChangesNothing) {
  const auto before = training_.results();
  const Bytes level = meter::live();
  Session session(within(budget(0.02), planning_time));
  const auto error = refusal(session, [&] { training_.train(); });
  ASSERT_TRUE(has(error, "no plan was found for this budget"));
  ASSERT_TRUE(error->facts().smallest_feasible.has_value());
  EXPECT_GT(*error->facts().smallest_feasible, session.budget());
  EXPECT_GT(error->facts().floor.value_or(0), level);
  EXPECT_EQ(difference(before, training_.results()), "");
  EXPECT_EQ(meter::live(), level);

  session.budget(*error->facts().smallest_feasible * 21 / 20);
  const auto expected = expected_of([&] { training_.train(); });
  session.run([&] { training_.train(); });
  EXPECT_EQ(difference(expected, training_.results()), "") << "it does";
}

TEST_F(RunStep, IsNotRunAgainOnceParametersAreWritten) {
  at::Tensor parameter = torch::ones({4}, torch::requires_grad());
  Session session(within(budget(), planning_time));
  const auto train = [&] {
    {
      const torch::NoGradGuard no_gradients;
      parameter.add_(1);
    }
    training_.train();
  };
  training_.call_that_does_not_fit(0);
  EXPECT_TRUE(has(refusal(session, train), "it had begun to write parameters"));
  training_.call_that_does_not_fit(-1);
  EXPECT_EQ(training_.calls(), 1);
  EXPECT_TRUE(torch::equal(parameter, torch::full({4}, 2.0)));

  const auto expected = expected_of([&] { training_.train(); });
  session.run(train);
  EXPECT_EQ(training_.calls(), 1) << "the next step follows the plan";
  EXPECT_EQ(difference(expected, training_.results()), "");
}

TEST_F(RunStep, IsNotRunAgainAfterBackward) {
  Session session(within(budget(), planning_time));
  const auto train = [&] {
    torch::ones({4}, torch::requires_grad()).pow(2).sum().backward();
    (void)torch::empty({budget()}, torch::kByte);
  };
  EXPECT_TRUE(has(refusal(session, train), "after backward, where an optimizer may have begun"));
}

TEST_F(RunStep, IsNotRunAgainIfMuchWasOverwritten) {
  at::Tensor large = torch::zeros({budget() / 8}, torch::kByte);
  Session session(within(budget() + 2 * static_cast<Bytes>(large.nbytes()), planning_time));
  training_.call_that_does_not_fit(0);
  const auto train = [&] {
    large.fill_(1);
    training_.train();
  };
  EXPECT_TRUE(has(refusal(session, train), "of tensors that were there before it"));
}

TEST_F(RunStep, IsNotRunAgainIfItAsksForContentsBeforeBackward) {
  training_.call_that_does_not_fit(0);
  Session session(within(budget(), planning_time));
  const auto asks = [&] {
    if ((training_.input() * 2).sum().item<float>() == 7) return;
    training_.train();
  };
  EXPECT_TRUE(has(refusal(session, asks), "operator aten::_local_scalar_dense tells the program"));
  EXPECT_EQ(training_.calls(), 1);
}

TEST_F(RunStep, MayAskForContentsAfterBackward) {
  const auto expected = expected_of([&] { training_.train(); });
  training_.call_that_does_not_fit(0);
  Session session(within(budget(), planning_time));
  session.run([&] {
    training_.train();
    (void)(training_.input() * 2).sum().item<float>();
  });
  EXPECT_EQ(training_.calls(), 2);
  EXPECT_EQ(difference(expected, training_.results()), "");
}

TEST_F(RunStep, LetsOtherErrorsThrough) {
  Session session(within(budget(2), planning_time));
  EXPECT_THROW(session.run([] { throw std::logic_error("mine"); }), std::logic_error);
  session.enabled(false);
  session.run([&] { training_.train(); });
}

}  // namespace
}  // namespace reprise
