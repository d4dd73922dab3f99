// A timetable's books after thousands of changes, and against the interpreter.
#include "plan/search/timetable.h"

#include <gtest/gtest.h>

#include "plan/search/best.h"
#include "plan/search/online_scores.h"
#include "reprise/simulate/simulate.h"
#include "support/cases.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::Random;
using testing::random_case;
using testing::read_aloud;
using testing::SmallTrace;

constexpr SimulateOptions without_budget{.record_live = true, .check_budget = false};

// What the interpreter says about the timetable as a plan, action by action.
void expect_as_simulated(const Problem& problem, const std::vector<Id>& nodes) {
  Timetable timetable(problem);
  ASSERT_TRUE(timetable.load(nodes));
  const Plan plan = to_plan(problem, nodes);
  const Simulation simulation = simulate(problem.trace, plan, without_budget);
  ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence << "\n" << read_aloud(plan);
  ASSERT_EQ(timetable.peak(), simulation.peak) << read_aloud(plan);
  double beside = 0;  // the time of transfers, all of which counts as cost here
  for (const Action& action : plan.actions) {
    if (action.kind != Action::Kind::put && action.kind != Action::Kind::get) continue;
    const TierEntry& entry = *plan.tiers[action.tier].find(action.target);
    beside += action.kind == Action::Kind::put ? entry.put_time : entry.get_time;
  }
  ASSERT_NEAR(timetable.cost(), simulation.cost - simulation.waited + beside, 1e-9 * simulation.cost);
  ASSERT_LE(simulation.waited, beside);
  ASSERT_EQ(timetable.fits(), simulation.peak <= problem.budget);
  std::size_t action = 0;
  for (Occurrence o = timetable.next(problem.moments); o >= 0; o = timetable.next(o), ++action) {
    while (plan.actions[action].kind == Action::Kind::drop) ++action;
    ASSERT_EQ(timetable.live_at(o), simulation.live[action]) << "action " << action << " of " << read_aloud(plan);
  }
}

// Changes a timetable at random, as a search would.
class Changes {
 public:
  Changes(const Problem& problem, Timetable& timetable, std::uint64_t seed)
      : problem_(problem), timetable_(timetable), random_(seed) {
    for (Id node = 0; node < problem.nodes; ++node) {
      if (problem.may_repeat[node]) may_repeat_.push_back(node);
    }
  }

  void change() {
    if (random_.chance(0.3) && !timetable_.repeats().empty()) {
      const Occurrence repeat = timetable_.repeats()[random_.below(timetable_.repeats().size())];
      if (timetable_.can_erase(repeat)) timetable_.erase(repeat);
    } else if (!may_repeat_.empty()) {
      insert(may_repeat_[random_.below(may_repeat_.size())], some_occurrence());
    }
    if (random_.chance(0.3)) random_.chance(0.5) ? timetable_.keep_changes() : timetable_.undo_changes();
  }

 private:
  Occurrence some_occurrence() {
    for (;;) {
      const auto block = timetable_.block(random_.between(0, timetable_.block_count() - 1));
      if (block.empty()) continue;
      const Occurrence o = block[random_.below(block.size())];
      if (timetable_.node_of(o) != nowhere) return o;  // not the start
    }
  }

  void insert(Id node, Occurrence at) {
    const Id moment = timetable_.moment_at(at);
    if (node < problem_.moments && node >= moment) return;  // has not run yet
    if (problem_.is_get(node) && problem_.held_while(problem_.outputs[node].front(), moment, false)) return;
    if (timetable_.can_insert(node, at)) timetable_.insert(node, at);
  }

  const Problem& problem_;
  Timetable& timetable_;
  Random random_;
  std::vector<Id> may_repeat_;
};

TEST(TimetableBooks, AgreeAfterThousandsOfRandomChanges) {
  std::size_t changes = 0, repeats = 0;
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(60); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      Random random(seed);
      const Trace trace = random_case(kind, seed, random.between(3, seed % 4 == 0 ? 150 : 25));
      const Timeline timeline(trace);
      const Problem problem(trace, timeline, keep_everything(trace).budget * 3 / 4);
      Timetable timetable(problem);
      expect_as_simulated(problem, timetable.nodes());
      Changes some(problem, timetable, seed);
      for (int i = 0; i < 400; ++i, ++changes) {
        some.change();
        if (i % 20 == 0) ASSERT_TRUE(timetable.agrees_with_itself()) << "after " << i << " changes";
        if (i % 50 == 0) expect_as_simulated(problem, without_useless_repeats(problem, timetable.nodes()));
        if (HasFatalFailure()) return;
      }
      repeats += timetable.repeats().size();
    }
  }
  EXPECT_GT(repeats, changes / 50) << "too little was changed to mean anything";
}

TEST(TimetableBooks, ComeBackExactlyWhenABatchIsUndone) {
  for (std::uint64_t seed = 1; seed <= cases(30); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Trace trace = random_case(CaseKind::tiers, seed, 20);
    const Timeline timeline(trace);
    const Problem problem(trace, timeline, keep_everything(trace).budget / 2);
    Timetable timetable(problem);
    Changes some(problem, timetable, seed);
    for (int i = 0; i < 100; ++i) some.change();
    timetable.keep_changes();
    const auto nodes = timetable.nodes();
    const auto peak = timetable.peak();
    const auto over = timetable.over_bytes();
    const double cost = timetable.cost();
    Random random(seed);
    timetable.begin_batch();
    for (int i = 0; i < 10 && !timetable.repeats().empty(); ++i) {
      const Occurrence repeat = timetable.repeats()[random.below(timetable.repeats().size())];
      if (timetable.can_erase(repeat)) timetable.erase(repeat);
    }
    timetable.undo_changes();
    ASSERT_EQ(timetable.nodes(), nodes);
    ASSERT_EQ(timetable.peak(), peak);
    ASSERT_EQ(timetable.over_bytes(), over);
    ASSERT_NEAR(timetable.cost(), cost, 1e-9);
  }
}

// Blocks of occurrences fill up, are split, and become empty again; bytes of long stays go over all of them.
TEST(TimetableBooks, SurviveBlocksThatBecomeEmpty) {
  SmallTrace small;
  small.run({}, {3});
  for (int i = 0; i < 300; ++i) small.run({}, {1});
  small.event({0});
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 4);
  Timetable timetable(problem);
  for (int i = 0; i < 500; ++i) timetable.insert(5, timetable.first_of(150));
  timetable.keep_changes();
  ASSERT_TRUE(timetable.agrees_with_itself());
  while (!timetable.repeats().empty()) timetable.erase(timetable.repeats().back());
  timetable.keep_changes();
  ASSERT_TRUE(timetable.agrees_with_itself());
  EXPECT_EQ(timetable.live_at(timetable.first_of(200)), 4);
  timetable.insert(0, timetable.first_of(301));  // the value is not needed in between any more
  EXPECT_EQ(timetable.live_at(timetable.first_of(200)), 1);
  ASSERT_TRUE(timetable.agrees_with_itself());
  timetable.undo_changes();
  EXPECT_EQ(timetable.live_at(timetable.first_of(200)), 4);
  ASSERT_TRUE(timetable.agrees_with_itself());
}

TEST(TimetableLoad, RefusesListsThatAreNoPlan) {
  SmallTrace small;
  small.run({}, {1});
  small.run({0}, {1});
  small.run({1}, {1});
  small.trace.operators[1].replayable = false;
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 10);
  Timetable timetable(problem);
  EXPECT_TRUE(timetable.load({0, 1, 0, 2}));
  EXPECT_EQ(timetable.nodes(), (std::vector<Id>{0, 1, 0, 2}));
  EXPECT_FALSE(timetable.load({0, 1, 1, 2})) << "may not be replayed";
  EXPECT_EQ(timetable.nodes(), (std::vector<Id>{0, 1, 2})) << "is as new";
  EXPECT_FALSE(timetable.load({0, 2, 1})) << "out of order";
  EXPECT_FALSE(timetable.load({0, 1})) << "incomplete";
  EXPECT_TRUE(timetable.load({0, 1, 2, 0, 0})) << "what comes after the last moment is useless";
  EXPECT_EQ(timetable.size(), 3);
}

TEST(TimetableLoad, KnowsThatATakenOverValueIsGone) {
  SmallTrace small;
  const Id input = small.outside(4);
  small.run({input}, {4});
  small.trace.values[1].takes_over = input;
  small.run({1}, {1});
  check(small.trace);
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 10);
  Timetable timetable(problem);
  EXPECT_EQ(timetable.peak(), 5);
  EXPECT_FALSE(timetable.load({0, 0, 1})) << "its input was taken over";
}

// A stretch of one moment: the value is needed there, and free to be evicted from there on.
TEST(TimetableStays, HaveTheUseAtWhichTheProgramBeginsAndEndsToHold) {
  SmallTrace small;
  small.run({}, {1});
  small.run({}, {}, 1, 12);
  small.event({});
  small.trace.values[0].held = Stretch{2, 2};
  check(small.trace);
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 12);
  const Timetable timetable(problem);
  std::vector<Occurrence> uses;
  timetable.uses_of(timetable.first_stay(timetable.first_of(0)), uses);
  EXPECT_EQ(uses, std::vector<Occurrence>{timetable.first_of(2)});
}

}  // namespace
}  // namespace reprise
