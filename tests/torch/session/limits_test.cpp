// What a recording cannot see: writes through raw pointers, and writes while nobody records. Both have a defined
// result.
#include <gtest/gtest.h>

#include <thread>

#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

namespace nn = torch::nn;
using testing::difference;
using testing::evicting_everything;
using testing::gradients;
using testing::meter_here;
using testing::Snapshot;
using testing::snapshots;
using testing::thrown_by;

// A linear layer and two activations; between them the user may do something.
class Limits : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }

  at::Tensor input() const { return x_; }
  // Both activations save their result; to recompute them takes the layer.
  static at::Tensor loss_of(const at::Tensor& h) { return (torch::tanh(torch::sigmoid(h) * h)).sum(); }

  std::vector<Snapshot> backward(const at::Tensor& loss) {
    loss.backward();
    auto results = snapshots(gradients(*linear_));
    linear_->zero_grad();
    return results;
  }

  std::vector<Snapshot> step_with_a_write_behind(Session* told) {
    const auto h = linear_(input());
    testing::write_behind(h, 3, 5);
    if (told) told->touched(h);
    return backward(loss_of(h));
  }

  // The bias is used in the forward, and saved by nobody.
  void change_bias() {
    at::NoGradGuard no_grad;
    linear_->bias.mul_(2);
  }
  void restore_bias() {
    at::NoGradGuard no_grad;
    linear_->bias.mul_(0.5);
  }
  at::Tensor loss() { return loss_of(linear_(input())); }

  static void expect_names_the_bias(const std::optional<ChangedInputError>& error) {
    ASSERT_TRUE(error.has_value());
    EXPECT_NE(error->facts().op.find("addmm"), std::string::npos) << error->facts().op;
    EXPECT_EQ(error->facts().argument, 0);
    EXPECT_EQ(error->facts().argument_name, "self");
    EXPECT_NE(std::string(error->what()).find("addmm"), std::string::npos) << error->what();
  }

  void expect_goes_on(Session& session) {
    restore_bias();
    linear_->zero_grad();
    const auto expected = backward(loss());
    auto step = session.step();
    EXPECT_EQ(difference(expected, backward(loss())), "");
  }

  nn::Linear linear_{16, 16};
  at::Tensor x_ = torch::ones({64, 16});
};

// ---- a raw pointer -------------------------------------------------------------------------------------------------

TEST_F(Limits, AWriteThroughARawPointerIsFoundByVerify) {
  for (const Verify verify : {Verify::always, Verify::first_time}) {
    SessionOptions options = evicting_everything();
    options.verify = verify;
    Session session(options);
    auto step = session.step();
    const auto error = thrown_by<MismatchError>([&] { (void)step_with_a_write_behind(nullptr); });
    ASSERT_TRUE(error.has_value());
    EXPECT_NE(error->facts().op.find("addmm"), std::string::npos) << error->facts().op;
    EXPECT_GE(error->facts().blocks, 1u);
    EXPECT_LT(error->facts().block, error->facts().blocks);
    linear_->zero_grad();
  }
}

TEST_F(Limits, WhatVerifyFoundIsKeptFromThenOn) {
  const auto expected = step_with_a_write_behind(nullptr);
  Session session(evicting_everything());
  int mismatches = 0;
  for (int i = 0; i < 4; ++i) {
    auto step = session.step();
    std::vector<Snapshot> results;
    if (thrown_by<MismatchError>([&] { results = step_with_a_write_behind(nullptr); })) {
      ++mismatches;
      linear_->zero_grad();
    } else {
      EXPECT_EQ(difference(expected, results), "");
    }
  }
  EXPECT_EQ(mismatches, 1);
  EXPECT_FALSE(session.summary().kept.empty()) << "and the summary says so";
}

TEST_F(Limits, VerifyAlwaysFindsAWriteInALaterStepToo) {
  const auto right = backward(loss());
  Session session(evicting_everything());
  for (int i = 0; i < 2; ++i) {
    auto step = session.step();
    EXPECT_EQ(difference(right, backward(loss())), "");
  }
  auto step = session.step();
  EXPECT_THROW((void)step_with_a_write_behind(nullptr), MismatchError);
}

TEST_F(Limits, AWriteThroughARawPointerIsExactIfTheSessionIsTold) {
  const auto expected = step_with_a_write_behind(nullptr);
  Session session(evicting_everything());
  for (int i = 0; i < 3; ++i) {
    auto step = session.step();
    EXPECT_EQ(difference(expected, step_with_a_write_behind(&session)), "");
  }
}

// What was computed from the old contents can no longer be recomputed: it is kept if it is still there, else this is
// said.
TEST_F(Limits, AWriteIntoAnInputIsExactOrAnErrorIfTheSessionIsTold) {
  const auto run = [&](Session* told) {
    const auto x = torch::ones({64, 16});
    auto value = torch::tanh(torch::sigmoid(linear_(x * 2) + x)).sum();
    testing::write_behind(x, 7, 3);
    if (told) told->touched(x);
    value = value + torch::tanh(torch::cos(linear_(x * 3) - x)).sum();
    return backward(value);
  };
  const auto expected = run(nullptr);
  {
    Session session(testing::within(no_limit));
    auto step = session.step();
    EXPECT_EQ(difference(expected, run(&session)), "");
  }
  SessionOptions options = evicting_everything();
  options.verify = Verify::never;
  Session session(options);
  auto step = session.step();
  const auto error = thrown_by<ChangedInputError>([&] { EXPECT_EQ(difference(expected, run(&session)), ""); });
  EXPECT_TRUE(error.has_value());
}

TEST_F(Limits, DeclaringAWriteToUnknownTensorsIsHarmless) {
  const auto expected = backward(loss());
  Session session(evicting_everything());
  session.touched(torch::ones({3}));
  session.touched(at::Tensor());
  auto step = session.step();
  session.touched(torch::ones({3}));
  session.touched(torch::empty({0}));
  session.touched(linear_->weight);
  EXPECT_EQ(difference(expected, backward(loss())), "");
}

TEST_F(Limits, VerifyCountsWhatItCompares) {
  for (const Verify verify : {Verify::never, Verify::first_time, Verify::always}) {
    SessionOptions options = evicting_everything();
    options.verify = verify;
    Session session(options);
    std::vector<std::int64_t> verified;
    for (int i = 0; i < 3; ++i) {
      auto step = session.step();
      (void)backward(loss());
      step.close();
      verified.push_back(session.summary().verified);
    }
    EXPECT_EQ(verified[0] > 0, verify != Verify::never);
    EXPECT_EQ(verified[2] > verified[1], verify == Verify::always);
  }
}

// ---- while nobody records ------------------------------------------------------------------------------------------

TEST_F(Limits, AnInputThatChangesAfterTheStepIsNamed) {
  const Bytes before = meter_here().live();
  Session session(evicting_everything());
  {
    at::Tensor value;
    {
      auto step = session.step();
      value = loss();
    }
    change_bias();
    expect_names_the_bias(thrown_by<ChangedInputError>([&] { value.backward(); }));
  }
  expect_goes_on(session);
  EXPECT_EQ(meter_here().live(), before);
}

TEST_F(Limits, AnInputThatChangesBetweenTwoStepsIsNamed) {
  Session session(evicting_everything());
  at::Tensor value;
  {
    auto step = session.step();
    value = loss();
  }
  change_bias();
  {
    auto step = session.step();
    expect_names_the_bias(thrown_by<ChangedInputError>([&] { value.backward(); }));
  }
  value.reset();
  expect_goes_on(session);
}

TEST_F(Limits, AnInputThatChangesWhileTheSessionIsOffIsNamed) {
  Session session(evicting_everything());
  at::Tensor value;
  {
    auto step = session.step();
    value = loss();
  }
  session.enabled(false);
  {
    auto step = session.step();
    change_bias();
  }
  session.enabled(true);
  {
    auto step = session.step();
    expect_names_the_bias(thrown_by<ChangedInputError>([&] { value.backward(); }));
  }
  value.reset();
  expect_goes_on(session);
}

TEST_F(Limits, AnInputThatAnotherThreadChangesIsNamed) {
  Session session(evicting_everything());
  {
    auto step = session.step();
    const auto value = loss();
    std::thread([&] { change_bias(); }).join();
    expect_names_the_bias(thrown_by<ChangedInputError>([&] { value.backward(); }));
  }
  expect_goes_on(session);
}

TEST_F(Limits, PlainLibTorchAcceptsSuchAChange) {
  const auto expected = backward(loss());
  const auto value = loss();
  change_bias();
  EXPECT_EQ(difference(expected, backward(value)), "");
}

TEST_F(Limits, ASavedTensorThatChangesAfterTheStepIsLibTorchsOwnError) {
  const auto text_of_backward = [&](const at::Tensor& value) {
    at::NoGradGuard no_grad;
    x_.add_(1);
    const auto error = thrown_by<c10::Error>([&] { value.backward(); });
    return error ? testing::text_of(*error) : "nothing thrown";
  };
  const std::string expected = text_of_backward(loss());
  linear_->zero_grad();
  x_ = torch::ones({64, 16});
  Session session(evicting_everything());
  at::Tensor value;
  {
    auto step = session.step();
    value = loss();
  }
  EXPECT_EQ(text_of_backward(value), expected);
}

}  // namespace
}  // namespace reprise
