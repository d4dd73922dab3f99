// BudgetError: what it says is exact, and afterwards everything goes on.
#include <gtest/gtest.h>

#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::counted_here;
using testing::difference;
using testing::meter_here;
using testing::SmallTraining;
using testing::thrown_by;
using testing::within;

std::optional<BudgetError> refusal(Session& session, SmallTraining& training) {
  auto step = session.step();
  return thrown_by<BudgetError>([&] { (void)training.step(); });
}

void expect_consistent(const BudgetError& error, Bytes budget) {
  const BudgetError::Facts& facts = error.facts();
  EXPECT_EQ(facts.budget, budget);
  EXPECT_GT(facts.requested, 0);
  EXPECT_EQ(error.need(), facts.live + facts.requested);
  EXPECT_GT(error.need(), budget);
  Bytes pinned = 0;
  for (std::size_t i = 0; i < facts.pinned.size(); ++i) {
    EXPECT_FALSE(facts.pinned[i].what.empty());
    if (i > 0) EXPECT_LE(facts.pinned[i].bytes, facts.pinned[i - 1].bytes) << "largest first";
    pinned += facts.pinned[i].bytes;
  }
  EXPECT_EQ(pinned, facts.live) << "all of it is explained";
  const std::string text = error.what();
  EXPECT_NE(text.find(std::to_string(budget)), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(error.need())), std::string::npos) << text;
}

TEST(BudgetErrorOfASession, IsExactForASingleAllocation) {
  const Bytes live = meter_here().live();
  Session session(within(live + 1_MiB));
  auto step = session.step();
  const Bytes header = counted_here(512) - 512;
  const auto fits = torch::empty({1_MiB - header}, torch::kByte);
  EXPECT_EQ(meter_here().live(), live + 1_MiB) << "to the last byte";
  const auto error = thrown_by<BudgetError>([&] { (void)torch::empty({1}, torch::kByte); });
  ASSERT_TRUE(error.has_value());
  expect_consistent(*error, session.budget());
  EXPECT_EQ(error->facts().live, live + 1_MiB);
  EXPECT_EQ(error->facts().requested, counted_here(1));
}

TEST(BudgetErrorOfASession, IsThrownBeforeTheFirstByteOver) {
  SmallTraining training;
  for (const double share : {0.02, 0.05, 0.1, 0.15, 0.2}) {
    SCOPED_TRACE(share);
    const Bytes budget = training.budget(share), before = meter_here().live();
    Session session(within(budget));
    meter_here().mark_peak();
    const auto error = refusal(session, training);
    EXPECT_LE(meter_here().peak(), budget);
    EXPECT_LE(session.summary().peak(), budget);
    if (share < 0.1) ASSERT_TRUE(error.has_value());
    if (error) expect_consistent(*error, budget);
    training.drop_gradients();
    EXPECT_EQ(meter_here().live(), before);
  }
}

TEST(BudgetErrorOfASession, IsNotTheEndOfIt) {
  SmallTraining training;
  Session session(within(training.budget(0.05)));
  ASSERT_TRUE(refusal(session, training).has_value());
  training.drop_gradients();
  session.budget(training.budget(0.8));
  for (int i = 0; i < 2; ++i) {
    auto step = session.step();
    EXPECT_EQ(difference(training.expected(), training.step()), "");
    training.drop_gradients();
  }
}

TEST(BudgetErrorOfASession, MayBeCaughtInsideTheStep) {
  SmallTraining training;
  Session session(within(training.budget(0.8)));
  const auto& expected = training.expected(64);
  auto step = session.step();
  EXPECT_THROW((void)training.step(4096), BudgetError);
  EXPECT_EQ(difference(expected, training.step(64)), "") << "a smaller batch in the same step";
  training.drop_gradients();
}

TEST(BudgetErrorOfASession, NamesTheSmallestBudgetThatIsKnownToWork) {
  SmallTraining training;
  Session session(within(no_limit, std::chrono::milliseconds(400)));
  {
    auto step = session.step();
    (void)training.step();
    training.drop_gradients();
  }
  session.budget(training.budget(0.08));
  std::optional<BudgetError> error;
  for (int i = 0; i < 3 && !(error && error->facts().smallest_feasible); ++i) {
    error = refusal(session, training);
    ASSERT_TRUE(error.has_value());
    training.drop_gradients();
    session.wait_for_plan();
  }
  ASSERT_TRUE(error->facts().smallest_feasible.has_value());
  const Bytes smallest = *error->facts().smallest_feasible;
  EXPECT_GT(smallest, session.budget());
  EXPECT_EQ(session.summary().smallest_feasible, smallest);
  session.budget(smallest);
  for (int i = 0; i < 3; ++i) {
    auto step = session.step();
    EXPECT_EQ(difference(training.expected(), training.step()), "");
    training.drop_gradients();
    step.close();
    session.wait_for_plan();
  }
}

}  // namespace
}  // namespace reprise
