// Segments over a recorded graph, executed on the live one.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "reprise/plan/segments.h"
#include "reprise/simulate/simulate.h"
#include "reprise/torch/session.h"
#include "torch/small_training.h"

namespace reprise {
namespace {

using testing::SmallTraining;
using testing::within;

TEST(LiveSegments, ArePlannedOnTheTraceAndExecutedEveryStepBitForBit) {
  SmallTraining training(8);
  for (const Bytes budget : {no_limit, training.peak() * 2}) {
    for (const Id segments : {1, 2, 4}) {
      Session session(within(budget));
      {
        const auto step = session.step();
        EXPECT_EQ(training.step(), training.expected());
      }
      const auto trace = session.trace();
      ASSERT_TRUE(trace.has_value());
      const SegmentPlan plan(*trace, Segments::uniform(forward_operators(*trace), segments), largest_bytes);
      session.follow(plan.plan());
      const Simulation proof = simulate(*trace, plan.plan());
      for (int i = 0; i < 3; ++i) {
        training.drop_gradients();
        const auto step = session.step();
        ASSERT_EQ(training.step(), training.expected()) << segments;
      }
      const Summary summary = session.summary();
      EXPECT_TRUE(summary.followed_plan);
      // What the plan says and no more. The mask of a dropout is two operators that are replayed as one.
      EXPECT_GE(static_cast<std::size_t>(summary.replays), proof.replays);
      EXPECT_LE(static_cast<std::size_t>(summary.replays), proof.replays + 8);
      EXPECT_GT(proof.replays, 0u);
      EXPECT_EQ(summary.promised_peak, proof.peak);
      EXPECT_LE(summary.peak_last_step(), proof.peak);
    }
  }
}

TEST(LiveSegments, HandMadeRangesEvictOnlyWhatIsInsideThem) {
  SmallTraining training(8);
  Session session(within(no_limit));
  {
    const auto step = session.step();
    (void)training.step();
  }
  const auto trace = session.trace();
  ASSERT_TRUE(trace.has_value());
  const Id operators = forward_operators(*trace);
  const SegmentPlan plan(*trace, Segments(operators, {{2, operators / 2}}), largest_bytes);
  bool inside = false;
  for (Id v = 0; v < trace->value_count(); ++v) {
    const auto maker = trace->values[v].maker;
    if (!plan.evicts(v)) continue;
    inside = true;
    ASSERT_TRUE(maker.has_value());
    EXPECT_GE(*maker, 2);
    EXPECT_LE(*maker, operators / 2);
  }
  EXPECT_TRUE(inside);
  session.follow(plan.plan());
  training.drop_gradients();
  const auto step = session.step();
  EXPECT_EQ(training.step(), training.expected());
  EXPECT_GT(session.summary().replays, 0);
}

}  // namespace
}  // namespace reprise
