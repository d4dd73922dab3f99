// The largest batch that trains inside a budget: predicted from small ones, and confirmed.
#include "reprise/torch/largest.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "torch/memory/meter.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::SmallTraining;
using testing::within;

// Recorded by a session of its own.
Trace recorded(SmallTraining& training, std::int64_t rows) {
  Session session;
  for (int i = 0; i < 2; ++i) {
    auto step = session.step();
    (void)training.step(rows);
    training.drop_gradients();
  }
  return session.trace().value();
}

Bytes plain_peak(SmallTraining& training, std::int64_t rows) {
  meter::mark_peak();
  (void)training.step(rows);
  const Bytes peak = meter::peak();
  training.drop_gradients();
  return peak;
}

TEST(GrowthOfRecordedSteps, IsExactInBytesForABatch) {
  SmallTraining training;
  (void)training.expected(64);
  training.drop_gradients();
  const Growth growth({{64, recorded(training, 64)}, {128, recorded(training, 128)}});
  for (const std::int64_t rows : {96, 256, 512}) {
    SCOPED_TRACE(rows);
    const Trace real = recorded(training, rows), predicted = growth.at(rows);
    ASSERT_EQ(predicted.value_count(), real.value_count());
    ASSERT_EQ(predicted.moment_count(), real.moment_count());
    for (Id v = 0; v < real.value_count(); ++v) EXPECT_EQ(predicted.values[v].bytes, real.values[v].bytes) << v;
    for (Id m = 0; m < real.moment_count(); ++m) {
      EXPECT_EQ(predicted.moments[m].other, real.moments[m].other) << real.label(m);
      EXPECT_EQ(predicted.workspace(m), real.workspace(m)) << real.label(m);
    }
    EXPECT_EQ(keep_everything(predicted).budget, keep_everything(real).budget);
    EXPECT_EQ(floor_of(predicted).bytes, floor_of(real).bytes);
  }
}

TEST(Largest, IsConfirmedByARealStepWithinTheBudget) {
  SmallTraining training;
  (void)plain_peak(training, 64);
  const Bytes budget = plain_peak(training, 512);
  Session session(within(budget));
  std::multiset<std::int64_t> trained;
  const Largest largest = session.largest({.sizes = {64, 128}, .at_most = 4096, .time_limit = std::chrono::seconds(1)},
                                          [&](std::int64_t rows) {
                                            trained.insert(rows);
                                            (void)training.step(rows);
                                            training.drop_gradients();
                                          });
  EXPECT_GE(largest.size, 512) << "what fits without evicting anything";
  EXPECT_GT(largest.peak, 0);
  EXPECT_LE(largest.peak, budget);
  EXPECT_EQ(trained.count(64), 3u);
  EXPECT_EQ(trained.count(128), 3u);
  EXPECT_EQ(trained.count(largest.size), 1u);
  EXPECT_EQ(trained.size(), 7 + largest.refused.size());
  ASSERT_TRUE(largest.fit.largest);
  EXPECT_GE(largest.fit.points[*largest.fit.largest].size, largest.size);
  for (const std::int64_t size : largest.refused) EXPECT_GT(size, largest.size);

  // What is promised can be had: the session goes on with this size.
  for (int i = 0; i < 2; ++i) {
    auto step = session.step();
    EXPECT_EQ(testing::difference(training.expected(largest.size), training.step(largest.size)), "");
    training.drop_gradients();
  }
  std::ostringstream text;
  text << largest;
  EXPECT_NE(text.str().find("A real step of size " + std::to_string(largest.size) + " kept it"), std::string::npos);
}

// As an optimizer's state comes after the first step: the first size is recorded without it, and the others with it.
TEST(Largest, DoesNotTakeWhatAFirstStepHasNotAllocatedYetForGrowth) {
  SmallTraining training;
  (void)plain_peak(training, 64);
  const Bytes of_others = plain_peak(training, 256);
  const Bytes budget = plain_peak(training, 1024) + of_others;
  Session session(within(budget));
  torch::Tensor state;
  const Largest largest = session.largest({.sizes = {64, 128}, .at_most = 4096, .time_limit = std::chrono::seconds(1)},
                                          [&](std::int64_t rows) {
                                            (void)training.step(rows);
                                            training.drop_gradients();
                                            if (!state.defined()) state = torch::empty({of_others}, torch::kByte);
                                          });
  EXPECT_GE(largest.size, 1024) << "what fits without evicting anything";
}

TEST(Largest, TriesSmallerSizesIfTheStepNeedsMoreThanWasPredicted) {
  SmallTraining training;
  (void)plain_peak(training, 64);
  Session session(within(plain_peak(training, 512)));
  // Something that only large batches do, and that nothing small could have told.
  const auto train = [&](std::int64_t rows) {
    (void)training.step(rows);
    training.drop_gradients();
    if (rows > 200) (void)torch::empty({session.budget()}, torch::kByte);
  };
  const Largest largest =
      session.largest({.sizes = {64, 128}, .at_most = 600, .time_limit = std::chrono::milliseconds(300)}, train);
  EXPECT_LE(largest.size, 200);
  EXPECT_GE(largest.size, 128);
  EXPECT_GT(largest.refused.size(), 3u);
}

TEST(Largest, NamesTheOperatorIfTheProgramDoesSomethingElseAtAnotherSize) {
  SmallTraining training;
  Session session(within(Bytes{1} << 30));
  const auto error = testing::thrown_by<BadInput>([&] {
    (void)session.largest({.sizes = {64, 128}}, [&](std::int64_t rows) {
      at::Tensor loss = training.loss(rows);
      if (rows > 100) loss = loss.sin();
      loss.backward();
      training.drop_gradients();
    });
  });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("operator 'aten::sin'"), std::string::npos) << error->what();
}

TEST(Largest, RefusesWhatMakesNoSense) {
  SmallTraining training;
  const auto refusal = [&](Session session, const LargestOptions& options) {
    const auto error = testing::thrown_by<BadOption>(
        [&] { (void)session.largest(options, [&](std::int64_t rows) { (void)training.step(rows); }); });
    return error ? std::string(error->what()) : "";
  };
  const auto has = [](const std::string& text, const std::string& words) {
    return ::testing::AssertionResult(text.find(words) != std::string::npos) << text;
  };
  EXPECT_TRUE(has(refusal(Session(within(1 << 30)), {.sizes = {64}}), "option sizes has 1"));
  EXPECT_TRUE(has(refusal(Session(within(1 << 30)), {.sizes = {64, 128}, .steps = 1}), "option steps is 1"));
  EXPECT_TRUE(has(refusal(Session(), {.sizes = {64, 128}}), "the session has no budget"));
  EXPECT_TRUE(has(refusal(Session(within(training.level())), {.sizes = {64, 128}}), "which does not fit the budget"));
  const auto thrown = testing::thrown_by<std::logic_error>([&] {
    Session session(within(1 << 30));
    (void)session.largest({.sizes = {64, 128}}, [](std::int64_t) { throw std::logic_error("mine"); });
  });
  EXPECT_TRUE(thrown);
}

}  // namespace
}  // namespace reprise
