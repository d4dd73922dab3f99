// The regimes of trap.h, each a suite.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "support/temporary_folder.h"
#include "torch/offload/disk_settings.h"
#include "torch/plans/planning_queue.h"
#include "torch/traps/trap_test.h"

namespace reprise::testing {
namespace {

// Kernels use one thread: the traps of threads say so themselves. And no tiles: virtual machines exist that claim to
// have them, and plain LibTorch ends with an illegal instruction there.
class Kernels : public ::testing::Environment {
 public:
  void SetUp() override {
    setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", 0);
    at::set_num_threads(1);
  }
};
const auto* const kernels = ::testing::AddGlobalTestEnvironment(new Kernels);

class PlainTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;
  void TestBody() override {
    const Outcome first = plain(), second = run_plain(trap_);
    EXPECT_EQ(!first.error.empty(), trap_.throws) << first.error;
    expect_as_plain(first, second);
  }
};

class RecordedTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;
  void TestBody() override {
    const Outcome expected = plain();
    expect_as_plain(expected, run(trap_, {.options = checked()}, expected));
  }
};

class ForcedTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;
  void TestBody() override { force(false); }

 protected:
  void force(bool build_inside) {
    SessionOptions options = checked();
    options.evict_everything = true;
    const Outcome expected = plain(),
                  outcome = run(trap_, {.options = options, .build_inside = build_inside}, expected);
    ++runs_;
    replayed_ += outcome.summary.replays > 0;
    expect_as_plain(expected, outcome);
  }

 public:
  // What replays nothing shows nothing. Some traps have nothing to replay.
  static void TearDownTestSuite() {
    std::cout << "[  forced  ] " << runs_ << " runs, " << replayed_ << " with replays in the last step\n";
    if (runs_ >= 40) EXPECT_GT(replayed_, runs_ * 3 / 4);
    runs_ = replayed_ = 0;
  }

 private:
  static inline std::int64_t runs_ = 0, replayed_ = 0;
};

class ForcedBuildTrap : public ForcedTrap {
 public:
  using ForcedTrap::ForcedTrap;
  void TestBody() override { force(true); }
};

class TightTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;

  void TestBody() override {
    const Outcome expected = plain();
    double tightest = 0;  // that was feasible
    for (const double share : {0.95, 0.85, 0.75, 0.65}) {
      for (const bool pack : {true, false}) {
        if (pack && !here().is_cpu()) continue;  // values of accelerators are not packed
        SCOPED_TRACE("share " + std::to_string(share) + (pack ? ", packing" : ""));
        SessionOptions options = checked();
        options.pack = pack;
        const Outcome outcome = run(trap_, {.options = options, .share = share}, expected);
        count(share, outcome);
        outcome.infeasible ? expect_in_bounds(outcome) : expect_as_plain(expected, outcome);
        tightest = outcome.infeasible ? 0 : share;
      }
    }
    // From here on down to the first budget that is too small.
    for (double share = tightest - 0.1; share > 0; share -= 0.1) {
      SCOPED_TRACE("share " + std::to_string(share));
      const Outcome outcome = run(trap_, {.options = checked(), .share = share}, expected);
      count(share, outcome);
      if (outcome.infeasible) return expect_in_bounds(outcome);
      expect_as_plain(expected, outcome);
    }
  }

  // A budget near the peak is there for the asking, most of the time. One test alone proves nothing.
  static void TearDownTestSuite() {
    std::cout << "[   tight  ] " << runs_ << " runs, " << infeasible_ << " infeasible; at 0.95 of the peak " << wide_
              << " runs, " << wide_infeasible_ << " infeasible; " << replays_ << " replays\n";
    if (wide_ < 40) return;
    EXPECT_LT(wide_infeasible_, wide_ / 2);
    EXPECT_GT(replays_, 0);
  }

 private:
  static void count(double share, const Outcome& outcome) {
    ++runs_;
    infeasible_ += outcome.infeasible;
    replays_ += outcome.summary.replays;
    if (share < 0.9) return;
    ++wide_;
    wide_infeasible_ += outcome.infeasible;
  }
  static inline std::int64_t runs_ = 0, infeasible_ = 0, wide_ = 0, wide_infeasible_ = 0, replays_ = 0;
};

class PlannedTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;

  void TestBody() override {
    const int steps = std::max(3, trap_.steps);
    const Outcome expected = plain(steps);
    SessionOptions options = checked();
    options.planning_time = std::chrono::milliseconds(50);
    const Outcome outcome = run(trap_, {.options = options, .share = 0.75, .steps = steps}, expected);
    ++runs_;
    infeasible_ += outcome.infeasible;
    followed_ += outcome.summary.followed_plan;
    outcome.infeasible ? expect_in_bounds(outcome) : expect_as_plain(expected, outcome);
  }

  static void TearDownTestSuite() {
    std::cout << "[  planned ] " << runs_ << " runs, " << infeasible_ << " infeasible, " << followed_
              << " followed a plan in the last step\n";
    if (runs_ >= 40) EXPECT_GT(followed_, (runs_ - infeasible_) / 3);
  }

 private:
  static inline std::int64_t runs_ = 0, infeasible_ = 0, followed_ = 0;
};

// Everything that would be evicted goes to disk, first by the online policy and then by a plan.
class DiskTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;

  void TestBody() override {
    const int steps = std::max(3, trap_.steps);
    const Outcome expected = plain(steps);
    const TemporaryFolder folder;
    const internal::DiskOfTest eager(nullptr, true);
    for (const double share : {0.75, 0.5}) {
      SCOPED_TRACE("share " + std::to_string(share));
      SessionOptions options = checked();
      options.planning_time = std::chrono::milliseconds(50);
      options.disk = {.folder = folder.path()};
      const Outcome outcome = run(trap_, {.options = options, .share = share, .steps = steps}, expected);
      ++runs_;
      infeasible_ += outcome.infeasible;
      used_ += outcome.summary.disk_got_last_step > 0;
      outcome.infeasible ? expect_in_bounds(outcome) : expect_as_plain(expected, outcome);
      internal::Planning::of_process().wait();  // a plan that is being made has the session's context, and so its disk
      EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    }
  }

  static void TearDownTestSuite() {
    std::cout << "[   disk   ] " << runs_ << " runs, " << infeasible_ << " infeasible, " << used_
              << " had values from disk in the last step\n";
    if (runs_ >= 40) EXPECT_GT(used_, (runs_ - infeasible_) / 3);
  }

 private:
  static inline std::int64_t runs_ = 0, infeasible_ = 0, used_ = 0;
};

}  // namespace

Traps::Traps(const std::vector<Trap>& traps) {
  for (const Trap& trap : traps) {
    add<PlainTrap>("PlainTrap", trap);
    add<RecordedTrap>("RecordedTrap", trap);
    add<ForcedTrap>("ForcedTrap", trap);
    add<ForcedBuildTrap>("ForcedBuildTrap", trap);
    if (trap.throws || trap.costly) continue;
    add<TightTrap>("TightTrap", trap);
    add<PlannedTrap>("PlannedTrap", trap);
    add<DiskTrap>("DiskTrap", trap);
  }
  for (const Trap& trap : traps) {
    add_interrupted(trap);
    add_company(trap);
  }
}

}  // namespace reprise::testing
