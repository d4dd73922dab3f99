// Local search on timetables: it only ever gets better, stops when asked to, and does the same again with the same
// seed.
#include "plan/search/search.h"

#include <gtest/gtest.h>

#include "reprise/plan/planner.h"
#include "support/cases.h"

namespace reprise {
using namespace internal;
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::random_case;

PlanOptions moves(std::uint64_t count) {
  PlanOptions options;
  options.moves = count;
  return options;
}

std::vector<Id> plain_order(const Problem& problem) {
  std::vector<Id> nodes(problem.moments);
  for (Id m = 0; m < problem.moments; ++m) nodes[m] = m;
  return nodes;
}

struct Setting {
  Setting(CaseKind kind, std::uint64_t seed, int size, int percent)
      : trace(random_case(kind, seed, size)), timeline(trace), problem(trace, timeline, budget_of(trace, percent)) {}
  static Bytes budget_of(const Trace& trace, int percent) {
    const Bytes low = floor_of(trace).bytes, high = keep_everything(trace).budget;
    return low + (high - low) * percent / 100;
  }
  const Trace trace;
  const Timeline timeline;
  const Problem problem;
};

// A slice of the effort may reach beyond its end.
TEST(Search, EndsWhenItIsCancelledWhateverShareOfTheEffortItMaySpend) {
  const Setting setting(CaseKind::step, 1, 20, 60);
  std::atomic<bool> cancel{false};
  PlanOptions options = moves(1'000'000'000);
  options.cancel = &cancel;
  Effort effort(options);
  Search search(setting.problem, 1, effort);
  int ticks = 0;
  search.on_tick = [&] { cancel = ++ticks == 3; };
  const double unit = search.unit_of(plain_order(setting.problem));
  search.anneal(plain_order(setting.problem), 1.5, 0.3 * unit, 0.003 * unit);
  EXPECT_EQ(ticks, 3);
}

TEST(Search, FindsOnlySchedulesThatFitAndCostWhatItSays) {
  int found = 0, tried = 0;
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(12); ++seed, ++tried) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Setting setting(kind, seed, 20, 60);
      const PlanOptions options = moves(3'000);
      Effort effort(options);
      Search search(setting.problem, seed, effort);
      double last = std::numeric_limits<double>::infinity();
      search.on_improvement = [&](double cost) {
        EXPECT_LT(cost, last);
        last = cost;
      };
      const double unit = search.unit_of(plain_order(setting.problem));
      search.penalty(5 * unit);
      search.anneal(plain_order(setting.problem), 1, 0.3 * unit, 0.003 * unit);
      EXPECT_GE(effort.spent(), 1);
      if (!search.has_best()) continue;
      ++found;
      Timetable timetable(setting.problem);
      ASSERT_TRUE(timetable.load(search.best()));
      ASSERT_TRUE(timetable.fits());
      ASSERT_NEAR(timetable.cost(), search.best_cost(), 1e-9 * search.best_cost());
      ASSERT_EQ(last, search.best_cost());
    }
  }
  EXPECT_GT(found, tried / 2);
}

TEST(Search, DoesTheSameWithTheSameSeed) {
  const Setting setting(CaseKind::graph, 5, 40, 40);
  const auto run = [&](std::uint64_t seed) {
    const PlanOptions options = moves(5'000);
    Effort effort(options);
    Search search(setting.problem, seed, effort);
    search.anneal(plain_order(setting.problem), 1, 0.01, 0.0001);
    return search.current();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(Search, PrunesToSomethingCheaperThatStillFits) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(20); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Setting setting(kind, seed, 15, 110);
      const PlanOptions options = moves(1'000'000);
      Effort effort(options);
      Search search(setting.problem, seed, effort);
      // Useless replays, wherever they are possible.
      Timetable wasteful(setting.problem);
      for (Id m = 1; m < setting.problem.moments; ++m) {
        if (!setting.problem.may_repeat[m - 1] || !wasteful.can_insert(m - 1, wasteful.first_of(m))) continue;
        wasteful.insert(m - 1, wasteful.first_of(m));
      }
      wasteful.keep_changes();
      if (!wasteful.fits()) continue;
      const auto pruned = search.prune(wasteful.nodes());
      ASSERT_TRUE(search.has_best());
      ASSERT_LE(search.best_cost(), wasteful.cost());
      ASSERT_NEAR(search.best_cost(), setting.problem.plain_cost, 1e-9) << "everything fits without any";
      ASSERT_TRUE(Timetable(setting.problem).load(pruned));
    }
  }
}

TEST(Search, EndsWhereItsLowerBoundIs) {
  const Setting setting(CaseKind::graph, 8, 30, 100);
  const PlanOptions options = moves(1'000'000);
  Effort effort(options);
  Search search(setting.problem, 1, effort);
  search.lower_bound = setting.problem.plain_cost;
  EXPECT_FALSE(search.proven());
  EXPECT_TRUE(search.offer(plain_order(setting.problem)));
  EXPECT_TRUE(search.proven());
  search.anneal(plain_order(setting.problem), 1, 0.1, 0.001);
  EXPECT_LT(effort.moves(), 100U);
}

TEST(Search, TakesOnlyWhatFits) {
  const Setting setting(CaseKind::graph, 8, 30, 50);
  const PlanOptions options = moves(10);
  Effort effort(options);
  Search search(setting.problem, 1, effort);
  EXPECT_FALSE(search.offer(plain_order(setting.problem)));
  EXPECT_FALSE(search.has_best());
  EXPECT_FALSE(search.offer({})) << "no timetable at all";
}

}  // namespace
}  // namespace reprise
