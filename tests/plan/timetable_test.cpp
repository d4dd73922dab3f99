// A schedule's books after thousands of changes, and against the interpreter.
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

// What the interpreter says about the schedule as a plan, action by action.
void expect_as_simulated(const Problem& problem, const std::vector<Id>& nodes) {
  Timetable schedule(problem);
  ASSERT_TRUE(schedule.load(nodes));
  const Plan plan = to_plan(problem, nodes);
  const Simulation simulation = simulate(problem.trace, plan, without_budget);
  ASSERT_TRUE(simulation.valid()) << simulation.broken->sentence << "\n" << read_aloud(plan);
  ASSERT_EQ(schedule.peak(), simulation.peak) << read_aloud(plan);
  ASSERT_NEAR(schedule.cost(), simulation.cost, 1e-9 * simulation.cost);
  ASSERT_EQ(schedule.fits(), simulation.peak <= problem.budget);
  std::size_t action = 0;
  for (Occurrence o = schedule.next(problem.moments); o >= 0; o = schedule.next(o), ++action) {
    while (plan.actions[action].kind == Action::Kind::drop) ++action;
    ASSERT_EQ(schedule.live_at(o), simulation.live[action]) << "action " << action << " of " << read_aloud(plan);
  }
}

// Changes a schedule at random, as a search would.
class Changes {
 public:
  Changes(const Problem& problem, Timetable& schedule, std::uint64_t seed)
      : problem_(problem), schedule_(schedule), random_(seed) {
    for (Id node = 0; node < problem.nodes; ++node) {
      if (problem.may_repeat[node]) may_repeat_.push_back(node);
    }
  }

  void change() {
    if (random_.chance(0.3) && !schedule_.repeats().empty()) {
      const Occurrence repeat = schedule_.repeats()[random_.below(schedule_.repeats().size())];
      if (schedule_.can_erase(repeat)) schedule_.erase(repeat);
    } else if (!may_repeat_.empty()) {
      insert(may_repeat_[random_.below(may_repeat_.size())], some_occurrence());
    }
    if (random_.chance(0.3)) random_.chance(0.5) ? schedule_.keep_changes() : schedule_.undo_changes();
  }

 private:
  Occurrence some_occurrence() {
    for (;;) {
      const auto block = schedule_.block(random_.between(0, schedule_.block_count() - 1));
      if (block.empty()) continue;
      const Occurrence o = block[random_.below(block.size())];
      if (schedule_.node_of(o) != nowhere) return o;  // not the start
    }
  }

  void insert(Id node, Occurrence at) {
    const Id moment = schedule_.moment_at(at);
    if (node < problem_.moments && node >= moment) return;  // has not run yet
    if (problem_.is_get(node) && problem_.held_while(problem_.outputs[node].front(), moment, false)) return;
    if (schedule_.can_insert(node, at)) schedule_.insert(node, at);
  }

  const Problem& problem_;
  Timetable& schedule_;
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
      Timetable schedule(problem);
      expect_as_simulated(problem, schedule.nodes());
      Changes some(problem, schedule, seed);
      for (int i = 0; i < 400; ++i, ++changes) {
        some.change();
        if (i % 20 == 0) ASSERT_TRUE(schedule.agrees_with_itself()) << "after " << i << " changes";
        if (i % 50 == 0) expect_as_simulated(problem, without_useless_repeats(problem, schedule.nodes()));
        if (HasFatalFailure()) return;
      }
      repeats += schedule.repeats().size();
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
    Timetable schedule(problem);
    Changes some(problem, schedule, seed);
    for (int i = 0; i < 100; ++i) some.change();
    schedule.keep_changes();
    const auto nodes = schedule.nodes();
    const auto peak = schedule.peak();
    const auto over = schedule.over_bytes();
    const double cost = schedule.cost();
    Random random(seed);
    schedule.begin_batch();
    for (int i = 0; i < 10 && !schedule.repeats().empty(); ++i) {
      const Occurrence repeat = schedule.repeats()[random.below(schedule.repeats().size())];
      if (schedule.can_erase(repeat)) schedule.erase(repeat);
    }
    schedule.undo_changes();
    ASSERT_EQ(schedule.nodes(), nodes);
    ASSERT_EQ(schedule.peak(), peak);
    ASSERT_EQ(schedule.over_bytes(), over);
    ASSERT_NEAR(schedule.cost(), cost, 1e-9);
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
  Timetable schedule(problem);
  for (int i = 0; i < 500; ++i) schedule.insert(5, schedule.first_of(150));
  schedule.keep_changes();
  ASSERT_TRUE(schedule.agrees_with_itself());
  while (!schedule.repeats().empty()) schedule.erase(schedule.repeats().back());
  schedule.keep_changes();
  ASSERT_TRUE(schedule.agrees_with_itself());
  EXPECT_EQ(schedule.live_at(schedule.first_of(200)), 4);
  schedule.insert(0, schedule.first_of(301));  // the value is not needed in between any more
  EXPECT_EQ(schedule.live_at(schedule.first_of(200)), 1);
  ASSERT_TRUE(schedule.agrees_with_itself());
  schedule.undo_changes();
  EXPECT_EQ(schedule.live_at(schedule.first_of(200)), 4);
  ASSERT_TRUE(schedule.agrees_with_itself());
}

TEST(TimetableLoad, RefusesListsThatAreNoPlan) {
  SmallTrace small;
  small.run({}, {1});
  small.run({0}, {1});
  small.run({1}, {1});
  small.trace.operators[1].replayable = false;
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 10);
  Timetable schedule(problem);
  EXPECT_TRUE(schedule.load({0, 1, 0, 2}));
  EXPECT_EQ(schedule.nodes(), (std::vector<Id>{0, 1, 0, 2}));
  EXPECT_FALSE(schedule.load({0, 1, 1, 2})) << "may not be replayed";
  EXPECT_EQ(schedule.nodes(), (std::vector<Id>{0, 1, 2})) << "is as new";
  EXPECT_FALSE(schedule.load({0, 2, 1})) << "out of order";
  EXPECT_FALSE(schedule.load({0, 1})) << "incomplete";
  EXPECT_TRUE(schedule.load({0, 1, 2, 0, 0})) << "what comes after the last moment serves nobody";
  EXPECT_EQ(schedule.size(), 3);
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
  Timetable schedule(problem);
  EXPECT_EQ(schedule.peak(), 5);
  EXPECT_FALSE(schedule.load({0, 0, 1})) << "its input was taken over";
}

// A stretch of one moment: the value is needed there, and free to be forgotten from there on.
TEST(TimetableStays, HaveTheUseAtWhichTheProgramBeginsAndEndsToHold) {
  SmallTrace small;
  small.run({}, {1});
  small.run({}, {}, 1, 12);
  small.event({});
  small.trace.values[0].held = Stretch{2, 2};
  check(small.trace);
  const Timeline timeline(small.trace);
  const Problem problem(small.trace, timeline, 12);
  const Timetable schedule(problem);
  std::vector<Occurrence> uses;
  schedule.uses_of(schedule.first_stay(schedule.first_of(0)), uses);
  EXPECT_EQ(uses, std::vector<Occurrence>{schedule.first_of(2)});
}

}  // namespace
}  // namespace reprise
