// A fault at every allocation of a step, in every regime: an exception, then a clean step with the right bits, and
// nothing leaked.
#include <gtest/gtest.h>

#include <new>

#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

namespace nn = torch::nn;
using testing::difference;
using testing::meter_here;
using testing::options_here;
using testing::Snapshot;

// Nothing here has a state that a broken step would leave changed, besides gradients and generator.
class Faults : public ::testing::Test {
 protected:
  Faults() {
    torch::manual_seed(5);
    x_ = torch::randn({16, 3, 8, 8});
    const auto conv = [](int from, int to, int size) { return nn::Conv2d(nn::Conv2dOptions(from, to, size)); };
    model_ = nn::Sequential(conv(3, 8, 3), nn::BatchNorm2d(nn::BatchNorm2dOptions(8).track_running_stats(false)),
                            nn::ReLU(nn::ReLUOptions(true)), conv(8, 8, 1), nn::Tanh(), nn::Dropout(0.3), conv(8, 8, 1),
                            nn::GELU(), conv(8, 8, 1), nn::Tanh(), nn::Flatten(), nn::Linear(8 * 36, 1));
    expected_ = step();
    model_->zero_grad();
    level_ = meter_here().live();
    meter_here().mark_peak();
    (void)step();
    peak_ = meter_here().peak();
    model_->zero_grad();
  }
  ~Faults() override { meter_here().fail_after(-1); }

  std::vector<Snapshot> step() {
    model_->zero_grad();
    torch::manual_seed(6);
    const auto loss = model_->forward(x_).pow(2).mean();
    loss.backward();
    return testing::snapshots(testing::gradients(*model_, {loss}));
  }

  Bytes budget(double share) const { return level_ + static_cast<Bytes>(share * static_cast<double>(peak_ - level_)); }

  // Whether an allocation failed.
  bool step_with_fault(Session& session, std::int64_t at) {
    bool failed = false;
    meter_here().fail_after(at);
    try {
      auto step_of_session = session.step();
      EXPECT_EQ(difference(expected_, step()), "") << "no exception, so it is as always";
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    const bool reached = failed;
    meter_here().fail_after(-1);
    model_->zero_grad();
    return reached;
  }

  void expect_clean_step(Session& session) {
    {
      auto step_of_session = session.step();
      EXPECT_EQ(difference(expected_, step()), "");
      model_->zero_grad();
    }
    EXPECT_EQ(meter_here().live(), level_) << "leaked";
  }

  void fail_everywhere(Session& session) {
    std::int64_t at = 0;
    for (; at < 2000; ++at) {
      SCOPED_TRACE("allocation " + std::to_string(at));
      const bool failed = step_with_fault(session, at);
      EXPECT_EQ(meter_here().live(), level_) << "leaked by the step that failed";
      expect_clean_step(session);
      if (!failed || HasFailure()) break;
    }
    EXPECT_GT(at, 20) << "it has more allocations than that";
    EXPECT_LT(at, 2000);
  }

  nn::Sequential model_{nullptr};
  at::Tensor x_;
  std::vector<Snapshot> expected_;
  Bytes level_ = 0, peak_ = 0;
};

TEST_F(Faults, WhileNothingIsEvicted) {
  Session session(testing::within(no_limit));
  fail_everywhere(session);
}

TEST_F(Faults, WhileEverythingIsEvicted) {
  Session session(testing::evicting_everything());
  fail_everywhere(session);
}

TEST_F(Faults, UnderABudget) {
  Session session(testing::within(budget(0.85)));
  expect_clean_step(session);
  fail_everywhere(session);
}

TEST_F(Faults, WhileAPlanIsFollowed) {
  Session session(testing::within(budget(0.85), std::chrono::milliseconds(200)));
  for (int i = 0; i < 3; ++i) {
    expect_clean_step(session);
    session.wait_for_plan();
  }
  expect_clean_step(session);
  EXPECT_TRUE(session.summary().followed_plan);
  fail_everywhere(session);
  expect_clean_step(session);
  session.wait_for_plan();
  expect_clean_step(session);
  EXPECT_TRUE(session.summary().followed_plan) << "still, or again";
}

// Saves a tensor that no operator has seen.
struct Remembers : torch::autograd::Function<Remembers> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& beside) {
    context->save_for_backward({beside});
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0] * context->get_saved_variables()[0], at::Tensor()};
  }
};

TEST(FaultsInWrites, AnOperatorThatWritesFailsInTheMiddleOfAStepThatIsFollowed) {
  SessionOptions options = options_here();
  options.evict_everything = true;
  options.planning_time = std::chrono::milliseconds(0);
  Session session(options);
  const auto weight = torch::ones({64}, torch::requires_grad());
  std::vector<Snapshot> expected;
  for (int i = 0; i < 6; ++i) {
    weight.mutable_grad().reset();
    const auto step = session.step();
    const auto h = Remembers::apply(torch::tanh(weight), torch::full({64}, 0.5));
    at::Tensor out = torch::empty({0});
    if (i % 2 == 1) meter_here().fail_after(0);
    try {
      const torch::NoGradGuard no_grad;
      at::sin_out(out, h);
    } catch (const std::bad_alloc&) {
    }
    meter_here().fail_after(-1);
    auto loss = torch::exp(h);
    for (int k = 0; k < 10; ++k) loss = torch::tanh(loss * 1.1);
    loss.sum().backward();
    const auto gradient = testing::snapshots({weight.grad()});
    if (i == 0) expected = gradient;
    EXPECT_EQ(difference(expected, gradient), "") << "step " << i;
  }
}

}  // namespace
}  // namespace reprise
