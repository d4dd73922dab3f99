// What planning may cost: a share of training, and no more than it saves.
#include "torch/plans/planning_budget.h"

#include <gtest/gtest.h>

#include <limits>

namespace reprise {
using namespace internal;
namespace {

using std::chrono::milliseconds;

constexpr double unlimited = std::numeric_limits<double>::infinity();
constexpr Bytes budget = 1000;

// A step under the online policy that took so long to recompute values, all in all `seconds`.
void online(PlanningBudget& planning, RecordedPass& pass, double recomputing, double seconds = 1) {
  planning.went_through(pass, recomputing, false, budget);
  planning.trained(seconds);
}

void with_plan(PlanningBudget& planning, RecordedPass& pass, double recomputing, double seconds = 1) {
  planning.went_through(pass, recomputing, true, budget);
  planning.trained(seconds);
}

// Plans for as long as it is allowed to. Returns for how long.
double plan(PlanningBudget& planning, RecordedPass& pass) {
  const double seconds = planning.allows(pass);
  if (seconds <= 0) return 0;
  planning.reserve(seconds);
  planning.done(pass, seconds, seconds);
  auto executable = std::make_shared<ExecutablePlan>();
  executable->gap = 0.1;
  pass.use(std::move(executable), {});
  return seconds;
}

TEST(PlanningBudget, TakesTheWholeTimeForEveryPlanIfItIsUnlimited) {
  PlanningBudget planning(unlimited, milliseconds(500));
  for (int i = 0; i < 100; ++i) {
    RecordedPass pass;
    online(planning, pass, 0.1);
    EXPECT_EQ(plan(planning, pass), 0.5);
    EXPECT_FALSE(planning.allows_more(pass));
  }
}

TEST(PlanningBudget, OfZeroOrWithoutTimeAllowsNothing) {
  for (PlanningBudget planning : {PlanningBudget(0, milliseconds(500)), PlanningBudget(1, milliseconds(0))}) {
    RecordedPass pass;
    for (int i = 0; i < 100; ++i) online(planning, pass, 0.5);
    EXPECT_TRUE(planning.none());
    EXPECT_EQ(planning.allows(pass), 0);
  }
}

TEST(PlanningBudget, SpendsNoMoreThanItsCreditOnTracesThatNeverComeAgain) {
  PlanningBudget planning(0.05, std::chrono::seconds(5));
  double first = 0;
  for (int i = 0; i < 1000; ++i) {
    RecordedPass pass;
    online(planning, pass, 0.5, 10);
    const double seconds = plan(planning, pass);
    if (i == 0) first = seconds;
  }
  EXPECT_EQ(first, 1) << "the first trace is most likely that of all steps";
  EXPECT_GT(planning.cost(), 1.5);
  EXPECT_LE(planning.cost(), 2);
}

TEST(PlanningBudget, SpendsLessOfItsCreditOnATraceThatIsNewAfterOthersThatWere) {
  PlanningBudget planning(0.05, std::chrono::seconds(5));
  RecordedPass pass;
  online(planning, pass, 0.5);
  EXPECT_EQ(planning.allows(pass, 0), 1);
  EXPECT_EQ(planning.allows(pass, 1), 1);
  EXPECT_EQ(planning.allows(pass, 2), 0.5);
  EXPECT_EQ(planning.allows(pass, 4), 0.125);
  EXPECT_EQ(planning.allows(pass, 8), 0) << "too short a search to find anything";
}

TEST(PlanningBudget, HasACreditOfAFewStepsWhereTheyAreShort) {
  const auto spent_on_new_traces = [](double seconds_of_a_step) {
    PlanningBudget planning(0.05, std::chrono::seconds(5));
    for (int i = 0; i < 1000; ++i) {
      RecordedPass pass;
      online(planning, pass, 0.5 * seconds_of_a_step, seconds_of_a_step);
      (void)plan(planning, pass);
    }
    return planning.cost();
  };
  EXPECT_NEAR(spent_on_new_traces(1), 2, 0.05);
  EXPECT_NEAR(spent_on_new_traces(0.125), 1, 0.05);
  EXPECT_NEAR(spent_on_new_traces(0.001), 0.5, 0.05) << "the first plan is worth a search in any case";
}

TEST(PlanningBudget, JobsThatWaitCountAsIfTheyWereDone) {
  PlanningBudget planning(0.05, std::chrono::seconds(5));
  double reserved = 0;
  for (int i = 0; i < 1000; ++i) {
    RecordedPass pass;
    online(planning, pass, 0.5, 0.01);
    const double seconds = planning.allows(pass);
    planning.reserve(seconds);
    reserved += seconds;
  }
  EXPECT_LE(reserved, 2);
  planning.not_done(reserved);
  RecordedPass pass;
  online(planning, pass, 0.5, 0.01);
  EXPECT_EQ(planning.allows(pass), 0.25) << "of half a second";
}

TEST(PlanningBudget, HasANewCreditWhenTheUserSetsAnotherBudget) {
  PlanningBudget planning(0.05, std::chrono::seconds(5));
  RecordedPass pass;
  online(planning, pass, 0.5);
  for (int i = 0; i < 20; ++i) (void)plan(planning, pass);
  EXPECT_LT(planning.allows(pass), 0.1);
  planning.renew_credit();
  EXPECT_EQ(planning.allows(pass), 1);
}

TEST(PlanningBudget, KeepsToItsShareOfTraining) {
  PlanningBudget planning(0.05, std::chrono::seconds(5));
  double trained = 0;
  for (int i = 0; i < 200; ++i) {
    RecordedPass pass;
    for (int step = 0; step < 20; ++step) {  // plans would save very much, and come too late to save anything
      online(planning, pass, 100);
      trained += 1;
      (void)plan(planning, pass);
      EXPECT_LE(planning.cost(), 2 + 0.05 * trained + 1e-6);
    }
  }
  EXPECT_GT(planning.cost(), 0.05 * trained) << "it is spent, too";
}

TEST(PlanningBudget, NeverCostsMoreThanPlansSaveBesideItsCredit) {
  PlanningBudget planning(1, std::chrono::seconds(5));
  RecordedPass pass;
  for (int i = 0; i < 10'000; ++i) {
    if (pass.executable) {
      with_plan(planning, pass, 0.09);
    } else {
      online(planning, pass, 0.1);
    }
    if (!pass.executable || planning.allows_more(pass)) (void)plan(planning, pass);
    EXPECT_LE(planning.cost(), 2 + 0.3 * 0.1 + std::max(0.0, planning.saved()) + 0.01 * pass.met);
  }
  EXPECT_NEAR(planning.saved(), 0.01 * 9'999, 1e-6);
}

TEST(PlanningBudget, SearchesLongerOnceThatPays) {
  PlanningBudget planning(0.05, std::chrono::seconds(5));
  RecordedPass pass;
  online(planning, pass, 0.5);
  EXPECT_EQ(plan(planning, pass), 1);
  EXPECT_FALSE(planning.allows_more(pass));
  int steps = 0;
  for (; pass.searched_for < 5 && steps < 10'000; ++steps) {
    with_plan(planning, pass, 0.3);
    if (planning.allows_more(pass)) (void)plan(planning, pass);
  }
  EXPECT_EQ(pass.searched_for, 5);
  for (int i = 0; i < 1000; ++i) with_plan(planning, pass, 0.3);
  EXPECT_FALSE(planning.allows_more(pass)) << "it has had all the time there is for one";
}

TEST(PlanningBudget, SearchesNoLongerForAPlanThatIsProvenGood) {
  PlanningBudget planning(0.05, std::chrono::seconds(5));
  RecordedPass pass;
  online(planning, pass, 0.5);
  (void)plan(planning, pass);
  auto executable = std::make_shared<ExecutablePlan>(*pass.executable);
  executable->gap = 0.001;
  pass.use(std::move(executable), {});
  for (int i = 0; i < 1000; ++i) with_plan(planning, pass, 0.3);
  EXPECT_FALSE(planning.allows_more(pass));
}

TEST(PlanningBudget, LearnsFromOtherTracesWhatAPlanSaves) {
  const auto allowed_after = [](double recomputing_with_plans) {
    PlanningBudget planning(1, std::chrono::seconds(5));
    RecordedPass known, other;
    online(planning, known, 0.1);
    (void)plan(planning, known);
    for (int i = 0; i < 100; ++i) with_plan(planning, known, recomputing_with_plans);
    for (int i = 0; i < 40; ++i) online(planning, other, 0.1);
    return planning.allows(other);
  };
  EXPECT_GT(allowed_after(0.05), allowed_after(0.08));
}

TEST(PlanningBudget, CountsWhatWasSavedOnlyWhereBothWereMeasuredUnderTheSameBudget) {
  PlanningBudget planning(0.05, std::chrono::seconds(5));
  RecordedPass pass;
  online(planning, pass, 0.5);
  (void)plan(planning, pass);
  with_plan(planning, pass, 0.3);
  EXPECT_NEAR(planning.saved(), 0.2, 1e-9);
  planning.went_through(pass, 0.1, true, 2 * budget);
  EXPECT_NEAR(planning.saved(), 0.2, 1e-9);
}

}  // namespace
}  // namespace reprise
