// InterruptedTrap: steps that throw at a random place, in a session that goes on.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>

#include "torch/traps/trap_test.h"

namespace reprise::testing {
namespace {

class InterruptedTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;

  void TestBody() override {
    SessionOptions evicting = checked();
    evicting.evict_everything = true;
    interrupt({.options = evicting}, "everything is evicted");
    if (trap_.throws || trap_.costly) return;
    SessionOptions planned = checked();
    planned.planning_time = std::chrono::milliseconds(20);
    interrupt({.options = planned, .share = 0.75, .steps = std::max(3, trap_.steps)}, "under a budget with plans");
  }

  // What is never interrupted shows nothing.
  static void TearDownTestSuite() {
    std::cout << "[interrupted] " << runs_ << " runs, " << interrupted_ << " interrupted\n";
    if (runs_ >= 40) EXPECT_GT(interrupted_, runs_ / 2);
  }

 private:
  void interrupt(Regime regime, const char* name) {
    const Outcome expected = plain(regime.steps);
    Session session(regime.options);
    std::mt19937_64 random(std::hash<std::string>()(trap_.name));
    const auto most = static_cast<double>(expected.allocations) * 1.2;  // those of replays are more
    const int interruptions = std::getenv("REPRISE_LONG") ? 100 : 4;
    for (int i = 0; i < interruptions; ++i) {
      regime.fail_after = std::uniform_int_distribution<std::int64_t>(0, static_cast<std::int64_t>(most))(random);
      SCOPED_TRACE(std::string(name) + ", interruption " + std::to_string(i) + " at allocation " +
                   std::to_string(regime.fail_after));
      expect_interrupted(expected, run(trap_, regime, expected, session));
      if (HasFailure()) return;
    }
    regime.fail_after = -1;
    SCOPED_TRACE(std::string(name) + ", after all interruptions");
    const Outcome outcome = run(trap_, regime, expected, session);
    outcome.infeasible ? expect_in_bounds(outcome) : expect_as_plain(expected, outcome);
  }

  // The error is the one that was put there, or it never came to that. Where the allocation was one of Reprise's own,
  // of an input that is about to be overwritten, what needs the input cannot be recomputed, and that is the error.
  static void expect_interrupted(const Outcome& expected, const Outcome& outcome) {
    ++runs_;
    const bool interrupted =
        outcome.error.find("bad_alloc") != std::string::npos || outcome.error.starts_with("[replay] ");
    interrupted_ += interrupted;
    if (!interrupted && !outcome.infeasible) {
      EXPECT_EQ(outcome.error, expected.error);
      EXPECT_EQ(difference(expected.results, outcome.results), "");
    }
    expect_in_bounds(outcome);
  }

  static inline std::int64_t runs_ = 0, interrupted_ = 0;
};

}  // namespace

void add_interrupted(const Trap& trap) {
  add<InterruptedTrap>("InterruptedTrap", trap);
}

}  // namespace reprise::testing
