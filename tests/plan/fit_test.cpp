// Which sizes fit a budget.
#include "reprise/plan/fit.h"

#include <gtest/gtest.h>

#include "reprise/plan/smallest.h"
#include "reprise/trace/error.h"
#include "support/cases.h"
#include "support/chains.h"

namespace reprise::fit_test {
namespace {

using testing::cases;
using testing::ChainForm;

// A chain of layers whose states grow with the batch, beside parameters that do not.
Trace chain_of_batch(std::int64_t batch, int layers = 8) {
  ChainForm form = testing::equal_layers(
      layers, {.state = 100 * batch, .forward_cost = 5 + 2.0 * static_cast<double>(batch), .backward_cost = 10});
  form.input = 10 * batch;
  form.parameters = 5000;
  form.events = true;
  return testing::chain_trace(form);
}

Growth chain_growth() {
  return Growth({{2, chain_of_batch(2)}, {4, chain_of_batch(4)}});
}

FitOptions options_for(Bytes budget, double seconds = 0.3) {
  FitOptions options;
  options.budget = budget;
  options.time_limit = std::chrono::duration<double>(seconds);
  return options;
}

const FitPoint* point_of(const Fit& fit, std::int64_t size) {
  for (const FitPoint& point : fit.points) {
    if (point.size == size) return &point;
  }
  return nullptr;
}

// By plain search over all sizes, with effort for each.
std::int64_t largest_by_trying(Bytes budget, std::int64_t at_most) {
  std::int64_t largest = 0;
  for (std::int64_t size = 1; size <= at_most; ++size) {
    PlanOptions effort;
    effort.moves = 2'000;
    effort.bounds = false;
    if (smallest_plan(chain_of_batch(size), effort).budget <= budget) largest = size;
  }
  return largest;
}

TEST(Fit, FindsTheLargestSizeThatFits) {
  for (const Bytes budget : {6'000, 9'000, 20'000}) {
    FitOptions options = options_for(budget);
    options.at_most = 40;
    const Fit fit = make_fit(chain_growth(), options);
    ASSERT_TRUE(fit.largest) << budget;
    EXPECT_GE(fit.points[*fit.largest].size, largest_by_trying(budget, 40)) << budget;
    if (!fit.reached_the_end) {
      const FitPoint* const beyond = point_of(fit, fit.points[*fit.largest].size + 1);
      ASSERT_TRUE(beyond);
      EXPECT_GT(beyond->result.smallest_feasible.value_or(0), budget);
    }
  }
}

TEST(Fit, HasAPlanForEverySizeUpToTheLargest) {
  const Growth growth = chain_growth();
  const Fit fit = make_fit(growth, options_for(12'000));
  ASSERT_TRUE(fit.largest);
  EXPECT_GE(fit.points.size(), 8u);
  for (std::size_t i = 0; i < fit.points.size(); ++i) {
    const FitPoint& point = fit.points[i];
    if (i > 0) EXPECT_GT(point.size, fit.points[i - 1].size);
    EXPECT_EQ(point.recorded, point.size == 2 || point.size == 4);
    EXPECT_EQ(point.result.has_plan(), i <= *fit.largest) << point.size;
    if (!point.result.has_plan()) continue;
    // The proof is about the program itself, not only about the prediction.
    const Simulation real = simulate(chain_of_batch(point.size), point.result.plan);
    EXPECT_TRUE(real.valid()) << real.broken->sentence;
    EXPECT_LE(real.peak, 12'000);
    EXPECT_DOUBLE_EQ(point.cost_per_sample(), real.cost / static_cast<double>(point.size));
    EXPECT_GE(point.cost_per_sample(), fit.points[*fit.cheapest].cost_per_sample());
  }
  EXPECT_NE(point_of(fit, 2), nullptr);
  EXPECT_NE(point_of(fit, 4), nullptr);
}

TEST(Fit, PlansExactlyTheSizesThatAreWanted) {
  FitOptions options = options_for(9'000);
  options.wanted = {400, 8, 2, 8};
  const Fit fit = make_fit(chain_growth(), options);
  ASSERT_EQ(fit.points.size(), 3u);
  EXPECT_EQ(fit.points[0].size, 2);
  EXPECT_EQ(fit.points[1].size, 8);
  EXPECT_EQ(fit.points[2].size, 400);
  EXPECT_EQ(fit.largest, 1u);
  EXPECT_EQ(fit.points[2].result.status, PlanStatus::infeasible);
  EXPECT_GT(fit.points[2].result.smallest_feasible.value_or(0), 9'000);
}

TEST(Fit, SaysSoIfNothingFits) {
  const Fit fit = make_fit(chain_growth(), options_for(4'000));  // the parameters are more
  EXPECT_FALSE(fit.largest);
  EXPECT_FALSE(fit.cheapest);
  ASSERT_EQ(fit.points.size(), 1u);
  EXPECT_EQ(fit.points[0].size, 1);
  EXPECT_GT(fit.points[0].result.smallest_feasible.value_or(0), 4'000);
}

TEST(Fit, EndsAtTheLargestSizeToLookAt) {
  FitOptions options = options_for(Bytes{1} << 40, 0.3);
  EXPECT_TRUE(make_fit(chain_growth(), options).reached_the_end);
  options.at_most = 5;
  const Fit fit = make_fit(chain_growth(), options);
  EXPECT_TRUE(fit.reached_the_end);
  ASSERT_TRUE(fit.largest);
  EXPECT_EQ(fit.points[*fit.largest].size, 5);
  EXPECT_EQ(fit.points[*fit.largest].result.cost_ratio(), 1);
}

TEST(Fit, OfRandomProgramsIsProvenForEverySize) {
  for (const testing::CaseKind kind : testing::all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(3); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace one = testing::random_case(kind, seed, 20);
      Trace three = one;
      for (Value& value : three.values) value.bytes *= 3;
      for (Operator& op : three.operators) op.workspace *= 3;
      const Growth growth({{1, one}, {3, three}});
      FitOptions options = options_for(2 * keep_everything(one).budget, 0.2);
      options.at_most = 30;
      const Fit fit = make_fit(growth, options);
      ASSERT_TRUE(fit.largest);
      for (const FitPoint& point : fit.points) {
        if (!point.result.has_plan()) continue;
        const Simulation simulation = simulate(growth.at(point.size), point.result.plan);
        EXPECT_TRUE(simulation.valid()) << simulation.broken->sentence;
        EXPECT_LE(simulation.peak, options.budget);
      }
    }
  }
}

TEST(Fit, CanBeCancelled) {
  const std::atomic<bool> cancel = true;
  FitOptions options = options_for(9'000, 1000);
  options.cancel = &cancel;
  EXPECT_TRUE(make_fit(chain_growth(), options).cancelled);
}

TEST(Fit, RefusesOptionsThatMakeNoSense) {
  const Growth growth = chain_growth();
  FitOptions options = options_for(9'000);
  options.wanted = {4, 0};
  EXPECT_THROW((void)make_fit(growth, options), BadOption);
  options = options_for(-1);
  EXPECT_THROW((void)make_fit(growth, options), BadOption);
  options = options_for(9'000);
  options.at_most = 0;
  EXPECT_THROW((void)make_fit(growth, options), BadOption);
  options = options_for(9'000);
  options.points = 101;
  EXPECT_THROW((void)make_fit(growth, options), BadOption);
}

}  // namespace
}  // namespace reprise::fit_test
