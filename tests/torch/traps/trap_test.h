// What the regimes of traps have in common: a test of one trap that compares it with the plain run.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "torch/here.h"
#include "torch/traps/trap.h"

namespace reprise::testing {

class TrapTest : public ::testing::Test {
 public:
  explicit TrapTest(Trap trap) : trap_(std::move(trap)) {}

 protected:
  void SetUp() override {
    if (trap_.cpu_only) REPRISE_ONLY_ON_CPU(trap_.cpu_only);
  }

  // LibTorch makes some things on first use and keeps them: the first run is not counted. Its results are.
  Outcome plain(int steps = 0) const {
    Outcome first;
    {
      const OnThreadsOfTheEngine as_usual;
      first = run_plain(trap_, steps);
    }
    EXPECT_EQ(!first.error.empty(), trap_.throws) << first.error;
    Outcome outcome = run_plain(trap_, steps);
    outcome.results = std::move(first.results);
    return outcome;
  }

  void expect_as_plain(const Outcome& plain, const Outcome& outcome) const {
    EXPECT_EQ(outcome.error, plain.error);
    EXPECT_EQ(difference(plain.results, outcome.results), "");
    if (plain.error.empty() && !plain.keeps_graph)
      EXPECT_EQ(outcome.kept, plain.kept) << "live bytes after the last step";
    expect_in_bounds(outcome);
  }

  static void expect_in_bounds(const Outcome& outcome) {
    EXPECT_LE(outcome.peak, outcome.budget);
    EXPECT_LE(outcome.summary.peak(), outcome.budget);
    EXPECT_EQ(outcome.complaints, "");
    EXPECT_EQ(outcome.leaked, 0) << "bytes live after everything was destroyed";
  }

  static SessionOptions checked() {
    SessionOptions options = options_here();
    options.verify = Verify::always;
    options.planning_time = std::chrono::milliseconds(0);
    return options;
  }

  const Trap trap_;
};

template <class Suite>
void add(const char* suite, const Trap& trap) {
  ::testing::RegisterTest(suite, trap.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [trap]() -> Suite* { return new Suite(trap); });
}

// Regimes with files of their own.
void add_interrupted(const Trap&);
void add_company(const Trap&);

}  // namespace reprise::testing
