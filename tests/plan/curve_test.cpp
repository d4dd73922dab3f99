// Properties of the curve of overhead against budget.
#include "reprise/plan/curve.h"

#include <gtest/gtest.h>

#include "reprise/trace/error.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::random_graph;
using testing::random_trace;
using testing::random_training_step;
using testing::SmallTrace;

Curve quick_curve(const Trace& trace, int points = 6, std::chrono::duration<double> time_limit = 60ms) {
  CurveOptions options;
  options.points = points;
  options.time_limit = time_limit;
  return make_curve(trace, options);
}

double cost(const CurvePoint& point) {
  return point.result->simulation.cost;
}

std::vector<Trace> some_traces() {
  std::vector<Trace> traces = {random_training_step(1, 12), random_training_step(2, 20), random_graph(3, 40)};
  for (std::uint64_t seed = 4; seed < 8; ++seed) traces.push_back(random_trace(seed, {.moments = 30}));
  return traces;
}

TEST(Curve, CostsAndBoundsNeverRiseWithTheBudget) {
  for (const Trace& trace : some_traces()) {
    const Curve curve = quick_curve(trace);
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
      EXPECT_LE(cost(curve.points[i]), cost(curve.points[i - 1])) << trace.name;
      EXPECT_LE(curve.points[i].result->lower_bound, curve.points[i - 1].result->lower_bound) << trace.name;
    }
  }
}

TEST(Curve, EveryPointHasAPlanThatTheInterpreterAcceptsForItsBudget) {
  for (const Trace& trace : some_traces()) {
    for (const CurvePoint& point : quick_curve(trace).points) {
      ASSERT_TRUE(point.result && point.result->has_plan()) << trace.name;
      EXPECT_EQ(point.result->budget, point.budget);
      EXPECT_EQ(point.result->plan.budget, point.budget);
      const Simulation proof = simulate(trace, point.result->plan);
      EXPECT_TRUE(proof.valid()) << proof.broken->sentence;
      EXPECT_EQ(proof.cost, cost(point));
      EXPECT_LE(proof.peak, point.budget);
      EXPECT_LE(point.result->lower_bound, proof.cost);
    }
  }
}

TEST(Curve, GoesFromTheSmallestBudgetToKeepingEverything) {
  for (const Trace& trace : some_traces()) {
    const Curve curve = quick_curve(trace);
    EXPECT_EQ(curve.keep_everything_peak, keep_everything(trace).budget);
    EXPECT_EQ(curve.floor, floor_of(trace).bytes);
    EXPECT_EQ(curve.points.front().budget, curve.smallest);
    EXPECT_EQ(curve.points.back().budget, curve.keep_everything_peak);
    EXPECT_GE(curve.smallest, curve.floor);
    EXPECT_EQ(cost(curve.points.back()), trace.total_cost());
    EXPECT_EQ(curve.points.back().result->status, PlanStatus::optimal);
  }
}

TEST(Curve, BudgetsAreEvenlySpread) {
  const Curve curve = quick_curve(random_training_step(9, 16), 5);
  ASSERT_EQ(curve.points.size(), 5u);
  const double step = static_cast<double>(curve.keep_everything_peak - curve.smallest) / 4;
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(static_cast<double>(curve.points[i].budget), static_cast<double>(curve.smallest) + i * step, 1);
  }
}

TEST(Curve, TheKneeIsFarthestBelowTheLineBetweenTheEnds) {
  int knees = 0;
  for (const Trace& trace : some_traces()) {
    const Curve curve = quick_curve(trace, 9);
    const CurvePoint &first = curve.points.front(), &last = curve.points.back();
    const auto below_line = [&](const CurvePoint& point) {
      const double along =
          static_cast<double>(point.budget - first.budget) / static_cast<double>(last.budget - first.budget);
      return cost(first) + along * (cost(last) - cost(first)) - cost(point);
    };
    if (!curve.knee) continue;
    ++knees;
    EXPECT_GT(below_line(curve.points[*curve.knee]), 0);
    for (const CurvePoint& point : curve.points) {
      EXPECT_LE(below_line(point), below_line(curve.points[*curve.knee]) + 1e-9);
    }
  }
  EXPECT_GT(knees, 2);
}

TEST(Curve, WhereNothingCanBeSavedThereIsOnePoint) {
  SmallTrace small;
  small.run({}, {100});
  small.run({0}, {100});
  const Curve curve = quick_curve(small.trace);
  ASSERT_EQ(curve.points.size(), 1u);
  EXPECT_EQ(curve.points[0].budget, 200);
  EXPECT_FALSE(curve.knee);
}

TEST(Curve, ATraceWithoutMomentsHasACurveToo) {
  const Curve curve = quick_curve(Trace{});
  ASSERT_EQ(curve.points.size(), 1u);
  EXPECT_TRUE(curve.points[0].result->has_plan());
}

TEST(Curve, FewerBytesThanPointsGiveFewerPoints) {
  SmallTrace small;
  small.run({}, {3});
  small.run({0}, {3});
  small.run({1}, {1});
  small.run({2}, {1});
  small.run({3, 1}, {1});
  small.run({4, 0}, {1});
  const Curve curve = quick_curve(small.trace, 100);
  EXPECT_GT(curve.points.size(), 1u);
  EXPECT_LE(curve.points.size(), 10u);
  for (std::size_t i = 1; i < curve.points.size(); ++i) EXPECT_GT(curve.points[i].budget, curve.points[i - 1].budget);
}

TEST(Curve, ThePointsHaveToBeAtLeastTwo) {
  const Trace trace = random_training_step(1, 4);
  EXPECT_THROW((void)quick_curve(trace, 1), BadOption);
  EXPECT_THROW((void)quick_curve(trace, 1001), BadOption);
}

TEST(Curve, ProgressGoesFromNothingToAllPoints) {
  CurveOptions options;
  options.points = 4;
  options.time_limit = 100ms;
  double last_share = 0;
  int last_done = 0;
  options.progress = [&](double share, int done) {
    EXPECT_GE(share, last_share);
    EXPECT_LE(share, 1);
    EXPECT_GE(done, last_done);
    last_share = share;
    last_done = done;
  };
  const Curve curve = make_curve(random_training_step(5, 12), options);
  EXPECT_EQ(last_done, static_cast<int>(curve.points.size()));
}

TEST(Curve, CancelledBeforeItStartsItStillHasItsEnds) {
  const std::atomic<bool> cancel = true;
  CurveOptions options;
  options.cancel = &cancel;
  const Trace trace = random_training_step(6, 12);
  const Curve curve = make_curve(trace, options);
  EXPECT_TRUE(curve.cancelled);
  EXPECT_TRUE(curve.points.front().result && curve.points.front().result->has_plan());
  EXPECT_TRUE(curve.points.back().result && curve.points.back().result->has_plan());
}

}  // namespace
}  // namespace reprise
