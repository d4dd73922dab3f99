// What a summary says of the last step: its numbers are of that step, and belong together.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "reprise/torch/checkpoint.h"
#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
namespace {

using testing::counted_here;
using testing::options_here;
using testing::SmallTraining;
using testing::soon;
using testing::within;

void train_once(Session& session, SmallTraining& training) {
  const auto step = session.step();
  (void)training.step();
  training.drop_gradients();
}

// As an optimizer's state comes after the first step: the plan of that one is followed, and more is evicted beside
// it.
TEST(SessionSummary, SaysWhatWasEvictedBesideAPlanThatOtherBytesHaveOutgrown) {
  SmallTraining training;
  Session session(within(training.budget(0.7), soon));
  train_once(session, training);
  session.wait_for_plan();
  train_once(session, training);
  const Summary before = session.summary();
  ASSERT_TRUE(before.followed_plan);
  EXPECT_EQ(before.replays_beside_plan, 0);
  EXPECT_LE(before.promised_peak, before.budget());

  const Bytes grown = (training.peak() - training.level()) / 4;
  const auto state = torch::zeros({grown / 4});
  train_once(session, training);
  const Summary after = session.summary();
  ASSERT_TRUE(after.followed_plan);
  EXPECT_GT(after.replays_beside_plan, 0);
  EXPECT_LE(after.replays_beside_plan, after.replays);
  EXPECT_GT(after.promised_peak, after.budget()) << "by itself it would not keep to it";
  EXPECT_NE(to_text(after).find("of the replays came beside it"), std::string::npos) << after;
  EXPECT_EQ(after.peak_if_kept, *before.peak_if_kept + counted_here(state.nbytes())) << "of this step";
  EXPECT_EQ(keep_everything(session.trace().value()).budget, after.peak_if_kept) << "and so is the trace";
}

TEST(SessionSummary, HasThePeakOfTheStepForItsPeakIfNothingWasEvicted) {
  SmallTraining training;
  Session session(options_here());
  for (const std::int64_t rows : {256, 256, 256, 256, 256, 256, 64}) {  // the last one is not recorded any more
    const auto step = session.step();
    (void)training.step(rows);
    training.drop_gradients();
  }
  EXPECT_EQ(session.summary().peak_if_kept, session.summary().peak_last_step());
}

// Without a budget, regions have recordings of their own.
TEST(SessionSummary, HasWhatRegionsEvictedAndReplayed) {
  const auto weight = torch::randn({256, 256}).requires_grad_();
  const auto step = [&](bool by_hand) {
    auto x = torch::randn({512, 256}).requires_grad_();
    const auto block = [&](const at::Tensor& input) { return torch::gelu(torch::tanh(input.mm(weight))).sigmoid(); };
    for (int i = 0; i < 6; ++i) x = by_hand ? checkpoint(block, x) : block(x);
    x.mean().backward();
  };
  Session plain(options_here());
  {
    const auto open = plain.step();
    step(false);
  }
  Session session(options_here());
  {
    const auto open = session.step();
    step(true);
  }
  const Summary summary = session.summary();
  EXPECT_GE(summary.replays, 6 * 2) << "in each region the product and the tangent, for what gelu has saved";
  if (testing::here().is_cpu()) EXPECT_GT(summary.replay_seconds, 0);  // nobody asks a device about regions
  EXPECT_GE(summary.evicted_last_step(), Bytes{6} * 512 * 256 * 4);
  EXPECT_EQ(summary.devices.front().evicted_last_step, summary.evicted_last_step());
  const auto expected = static_cast<double>(plain.summary().peak_last_step());
  EXPECT_LT(static_cast<double>(summary.peak_last_step()), 0.9 * expected);
  EXPECT_NEAR(static_cast<double>(summary.peak_if_kept.value_or(0)), expected, 0.1 * expected);
  EXPECT_EQ(summary.divergences, 0);
}

// Each write makes a new value of the same memory.
TEST(SessionSummary, CountsMemoryThatIsWrittenInPlaceOnceAmongWhatIsKept) {
  SessionOptions options = options_here();
  options.evict_everything = true;
  Session session(options);
  const auto weight = torch::randn({64}).requires_grad_();
  {
    const auto step = session.step();
    auto rows = torch::zeros({256, 16, 64});
    for (int i = 0; i < 256; ++i) rows[i] = torch::tanh(weight * i);
    rows.pow(2).mean().backward();
  }
  const Summary summary = session.summary();
  ASSERT_FALSE(summary.kept.empty());
  for (const KeptOperator& kept : summary.kept) EXPECT_LE(kept.bytes, summary.peak_last_step()) << kept.op;
}

}  // namespace
}  // namespace reprise
