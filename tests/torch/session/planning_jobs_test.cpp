// The planning of a session: what it begins with, and what becomes of a search that finds nothing.
#include "torch/session/planning_jobs.h"

#include <gtest/gtest.h>

#include <limits>

#include "torch/memory/arbiter.h"
#include "torch/plans/made_period.h"
#include "torch/plans/planning.h"

namespace reprise {
using namespace internal;
namespace {

using testing::MadePeriod;

constexpr Bytes of_value = 100;

// Six values, each made from the one before, and backward, which needs them from the last to the first.
std::shared_ptr<Period> chain(Bytes bytes = of_value) {
  MadePeriod made;
  std::vector<Id> values{made.outside(bytes)};
  for (int i = 0; i < 6; ++i) {
    values.push_back(made.run({values.back()}, bytes));
    if (i > 0) made.release(values[i], i);
  }
  made.release(values.back(), 6);
  for (int i = 6; i > 0; --i) made.event("event", {values[i]});
  auto period = std::make_shared<Period>(made.period());
  period->met = 1;
  return period;
}

class Jobs : public ::testing::Test {
 protected:
  Jobs() { Planning::of_process().prepare(); }

  void ask_for(const std::shared_ptr<Period>& period, Bytes budget) {
    {
      const Arbiter lock;
      jobs_->ask_for(period, budget, known_);
    }
    Planning::of_process().wait();
  }

  KnownPeriods known_;
  const std::shared_ptr<Rules> rules_ = std::make_shared<Rules>(SessionOptions());
  const std::shared_ptr<PlanningJobs> jobs_ = std::make_shared<PlanningJobs>(
      rules_, PlanningBudget(std::numeric_limits<double>::infinity(), std::chrono::milliseconds(50)), "");
};

TEST_F(Jobs, MakeAPlanAndLearnFromIt) {
  const auto period = chain();
  ask_for(period, 4 * of_value);
  ASSERT_TRUE(period->script);
  EXPECT_FALSE(rules_->advice().all().empty());
}

TEST_F(Jobs, LeaveAPeriodThePlanItHasIfTheyFindNoOther) {
  const auto period = chain();
  ask_for(period, 4 * of_value);
  const auto script = period->script;
  ASSERT_TRUE(script);
  std::vector<OtherBytes> more = period->other;
  for (OtherBytes& other : more) other = {10 * of_value, 10 * of_value};
  period->see_other(more);
  ASSERT_TRUE(period->outgrew_plan());
  ask_for(period, 4 * of_value);
  EXPECT_TRUE(period->infeasible);
  EXPECT_EQ(period->script, script);
  ASSERT_TRUE(period->smallest_feasible);
  EXPECT_GT(*period->smallest_feasible, 10 * of_value);

  const double cost = jobs_->budget().cost();
  ask_for(period, 4 * of_value);
  EXPECT_EQ(jobs_->budget().cost(), cost) << "there is no sense in searching again for as long";
  ask_for(period, 20 * of_value);
  EXPECT_FALSE(period->infeasible);
  EXPECT_NE(period->script, script);
}

TEST(KnownPeriods, FindARelativeWithAPlanWhoseSizesMayDiffer) {
  KnownPeriods known;
  constexpr Bytes many = Bytes{1} << 40;
  const auto one = chain(100), other = chain(200);
  known.add(one, many);
  known.add(other, many);
  EXPECT_EQ(known.relative_of(*other), nullptr) << "it has no plan";
  one->plan = Plan();
  EXPECT_EQ(known.relative_of(*other), one);
  EXPECT_EQ(known.relative_of(*one), nullptr) << "nobody is his own relative";
  one->seen.moments.back().name = 1;
  EXPECT_EQ(known.relative_of(*other), nullptr);
}

}  // namespace
}  // namespace reprise
