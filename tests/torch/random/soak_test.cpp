// Thousands of steps: live bytes and resident memory stay where they are. REPRISE_LONG=1 makes it many more.
#include <gtest/gtest.h>

#include <cstdlib>

#include "reprise/torch/session.h"
#include "torch/memory/meter.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::difference;
using testing::SmallTraining;

#ifdef REPRISE_SANITIZED
constexpr int short_run = 200;
#else
constexpr int short_run = 2000;
#endif

int steps() {
  return std::getenv("REPRISE_LONG") ? 50 * short_run : short_run;
}

// Batches of these sizes, over and over; each is checked now and then.
void soak(Session& session, SmallTraining& training) {
  static constexpr int rows[] = {16, 24, 16, 8};
  for (const int batch : rows) (void)training.expected(batch);
  const Bytes live = meter::live();
  Bytes resident = 0;
  for (int i = 0; i < steps(); ++i) {
    const int batch = rows[i % std::size(rows)];
    {
      auto step = session.step();
      const auto results = training.step(batch);
      if (i % 50 < 4) ASSERT_EQ(difference(training.expected(batch), results), "") << "step " << i;
      training.drop_gradients();
    }
    ASSERT_EQ(meter::live(), live) << "after step " << i;
    if (i == steps() / 4) session.wait_for_plan();
    if (i == steps() / 2) resident = meter::resident();
  }
  session.wait_for_plan();
  const Summary summary = session.summary();
  EXPECT_EQ(summary.steps, steps());
  EXPECT_LE(summary.peak(), session.budget());
  EXPECT_LE(summary.traces, 8);
  EXPECT_LE(summary.last_divergences.size(), 10u);
#ifndef REPRISE_SANITIZED
  EXPECT_LE(meter::resident(), resident + 4_MiB) << "resident memory grew in the second half";
#endif
}

TEST(Soak, WithEverythingEvicted) {
  SmallTraining training(3, 32, 24);
  Session session(testing::evicting_everything());
  soak(session, training);
}

TEST(Soak, WithoutALimit) {
  SmallTraining training(3, 32, 24);
  Session session(testing::within(no_limit));
  soak(session, training);
}

TEST(Soak, UnderABudgetWithPlans) {
  SmallTraining training(3, 32, 24);
  Session session(testing::within(training.budget(0.8), std::chrono::milliseconds(200)));
  soak(session, training);
}

// Steps of which hardly any comes again, with planning as it is by default: what a session knows stays bounded.
TEST(Soak, WithStepsThatAllDiffer) {
  const at::Tensor weight = at::full({16, 16}, 0.1).requires_grad_(true);
  const Bytes live = meter::live();
  SessionOptions options;
  options.budget = live + 32_KiB;
  Session session(options);
  std::uint32_t random = 1;
  Bytes resident = 0;
  for (int i = 0; i < steps(); ++i) {
    {
      const auto step = session.step();
      at::Tensor h = at::ones({32, 16});
      for (int block = 0; block < 12; ++block) {
        random = random * 1664525u + 1013904223u;
        h = at::matmul(h, weight);
        h = (random >> 30) == 0 ? at::sin(h) : (random >> 30) == 1 ? at::tanh(h) : (random >> 30) == 2 ? h * h : h;
      }
      h.sum().backward();
    }
    weight.mutable_grad().reset();
    ASSERT_EQ(meter::live(), live) << "after step " << i;
    if (i == steps() / 2) resident = meter::resident();
  }
  session.wait_for_plan();
  const Summary summary = session.summary();
  EXPECT_GE(summary.traces, steps() * 9 / 10);
  EXPECT_LE(summary.peak(), session.budget());
#ifndef REPRISE_SANITIZED
  EXPECT_LE(meter::resident(), resident + 4_MiB) << "resident memory grew in the second half";
#endif
}

TEST(Soak, WithASessionForEveryStep) {
  SmallTraining training(3, 32, 24);
  const auto& expected = training.expected();
  const Bytes live = meter::live();
  for (int i = 0; i < steps() / 10; ++i) {
    Session session(testing::within(training.budget(0.8)));
    auto step = session.step();
    ASSERT_EQ(difference(expected, training.step()), "");
    training.drop_gradients();
    step.close();
    ASSERT_EQ(meter::live(), live);
  }
}

}  // namespace
}  // namespace reprise
