#include "reprise/report/memory_picture.h"

#include <gtest/gtest.h>

#include "report/well_formed.h"
#include "reprise/plan/planner.h"
#include "reprise/trace/amount.h"
#include "reprise/trace/error.h"
#include "support/random_trace.h"

namespace reprise {
namespace {

TEST(MemoryPicture, IsWellFormedAndTellsBothPeaksAndTheBudget) {
  const Trace trace = testing::random_training_step(3, 12);
  const Plan plan = keep_everything(trace);
  const std::string svg = memory_picture(trace, plan, "a <step> & more");
  EXPECT_EQ(testing::xml_problem(svg), "");
  EXPECT_NE(svg.find("a &lt;step&gt; &amp; more"), std::string::npos);
  EXPECT_NE(svg.find("plain: " + format_bytes(simulate(trace, keep_everything(trace)).peak)), std::string::npos);
  EXPECT_NE(svg.find("budget " + format_bytes(plan.budget)), std::string::npos);
}

TEST(MemoryPicture, OfATraceWithoutMomentsIsEmptyButWellFormed) {
  EXPECT_EQ(testing::xml_problem(memory_picture(Trace{}, Plan{}, "nothing")), "");
}

TEST(MemoryPicture, RefusesAPlanThatIsNotValid) {
  const Trace trace = testing::random_training_step(3, 12);
  Plan plan = keep_everything(trace);
  plan.actions.pop_back();
  plan.actions.erase(plan.actions.begin());
  EXPECT_THROW((void)memory_picture(trace, plan, ""), BadInput);
}

}  // namespace
}  // namespace reprise
