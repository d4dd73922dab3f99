// The planning of a session: what it begins with, and what becomes of a search that finds nothing.
#include "torch/session/planning_jobs.h"

#include <gtest/gtest.h>

#include <limits>

#include "torch/memory/arbiter.h"
#include "torch/plans/made_pass.h"
#include "torch/plans/planning_queue.h"

namespace reprise {
using namespace internal;
namespace {

using testing::MadePass;

constexpr Bytes of_value = 100;

// Six values, each made from the one before, and backward, which needs them from the last to the first.
std::shared_ptr<RecordedPass> chain(Bytes bytes = of_value) {
  MadePass made;
  std::vector<Id> values{made.outside(bytes)};
  for (int i = 0; i < 6; ++i) {
    values.push_back(made.run({values.back()}, bytes));
    if (i > 0) made.release(values[i], i);
  }
  made.release(values.back(), 6);
  for (int i = 6; i > 0; --i) made.event("event", {values[i]});
  auto pass = std::make_shared<RecordedPass>(made.pass());
  pass->met = 1;
  return pass;
}

class Jobs : public ::testing::Test {
 protected:
  Jobs() { Planning::of_process().prepare(); }

  void ask_for(const std::shared_ptr<RecordedPass>& pass, Bytes budget) {
    {
      const Arbiter lock;
      jobs_->ask_for(pass, budget, known_);
    }
    Planning::of_process().wait();
  }

  RecordedPassCache known_;
  const std::shared_ptr<RecordingContext> context_ = std::make_shared<RecordingContext>(SessionOptions());
  const std::shared_ptr<PlanningJobs> jobs_ = std::make_shared<PlanningJobs>(
      context_, PlanningBudget(std::numeric_limits<double>::infinity(), std::chrono::milliseconds(50)), "");
};

TEST_F(Jobs, MakeAPlanAndLearnFromIt) {
  const auto pass = chain();
  ask_for(pass, 4 * of_value);
  ASSERT_TRUE(pass->executable);
  EXPECT_FALSE(context_->hints().all().empty());
}

TEST_F(Jobs, LeaveAPassThePlanItHasIfTheyFindNoOther) {
  const auto pass = chain();
  ask_for(pass, 4 * of_value);
  const auto executable = pass->executable;
  ASSERT_TRUE(executable);
  std::vector<OtherBytes> more = pass->profile.other;
  for (OtherBytes& other : more) other = {10 * of_value, 10 * of_value};
  pass->add_other(more);
  ASSERT_TRUE(pass->outgrew_plan());
  ask_for(pass, 4 * of_value);
  EXPECT_TRUE(pass->infeasible);
  EXPECT_EQ(pass->executable, executable);
  ASSERT_TRUE(pass->smallest_feasible);
  EXPECT_GT(*pass->smallest_feasible, 10 * of_value);

  const double cost = jobs_->budget().cost();
  ask_for(pass, 4 * of_value);
  EXPECT_EQ(jobs_->budget().cost(), cost) << "there is no sense in searching again for as long";
  ask_for(pass, 20 * of_value);
  EXPECT_FALSE(pass->infeasible);
  EXPECT_NE(pass->executable, executable);
}

TEST(RecordedPassCache, FindARelativeWithAPlanWhoseSizesMayDiffer) {
  RecordedPassCache known;
  constexpr Bytes many = Bytes{1} << 40;
  const auto one = chain(100), other = chain(200);
  known.add(one, many);
  known.add(other, many);
  EXPECT_EQ(known.find_similar(*other), nullptr) << "it has no plan";
  one->plan = Plan();
  EXPECT_EQ(known.find_similar(*other), one);
  EXPECT_EQ(known.find_similar(*one), nullptr) << "nobody is his own relative";
  one->profile.moments.back().name = 1;
  EXPECT_EQ(known.find_similar(*other), nullptr);
}

}  // namespace
}  // namespace reprise
