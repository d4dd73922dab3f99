// CompanyTrap: traps beside a thread that draws, allocates and trains (company.h).
//
// What the trap draws then depends on what the company draws in between. So the oracle is: the trap runs in a session
// beside the company, and its draws are written on a tape; then it runs plainly and alone, and the tape is played to
// it. Results have to be the same bits; the generator is the company's too and is not compared.
#include <ATen/record_function.h>

#include <atomic>
#include <functional>
#include <iostream>

#include "torch/company.h"
#include "torch/operators.h"
#include "torch/trap_test.h"

namespace reprise::testing {
namespace {

// ---- the tape
// -------------------------------------------------------------------------------------------------------- THIS IS
// WHERE THE TAPE OF torch/draws.h COMES IN: `recorded` runs it with a tape that records this thread's draws, `played`
// with the tape being played. Until then the tape is blank, nothing is known of what was drawn, and results are
// compared only for traps that draw nothing; all others are left to Verify::always.
struct Tape {
  static constexpr bool blank = true;
};
enum class With { recorded, played };

Outcome with_tape([[maybe_unused]] Tape& tape, [[maybe_unused]] With with, const std::function<Outcome()>& run) {
  return run();
}

// ---- what traps draw
// -------------------------------------------------------------------------------------------------

std::atomic<bool> drawn{false};

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& function) {
  const OperatorInfo* const info = find_operator(function);
  if (info && info->random) drawn = true;
  return nullptr;
}

// Whether any thread draws in the steps; building the model does not count.
bool steps_draw(const Trap& trap) {
  Trap watched = trap;
  watched.make = [&] {
    Work work = trap.make();
    drawn = false;
    return work;
  };
  const at::CallbackHandle callback =
      at::addGlobalCallback(at::RecordFunctionCallback(see).scopes({at::RecordScope::FUNCTION}));
  (void)run_plain(watched);
  at::removeCallback(callback);
  return drawn;
}

std::vector<Snapshot> without_generator(std::vector<Snapshot> results) {
  std::erase_if(results, [](const Snapshot& one) { return one.kind == "generator"; });
  return results;
}

// ---- the regime
// ------------------------------------------------------------------------------------------------------

class CompanyTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;

  void TestBody() override {
    Company company;
    const Outcome alone = plain();
    const bool draws = steps_draw(trap_);
    drawing_ += draws;
    SessionOptions options = checked();
    options.forget_everything = true;
    beside(company, {.options = options}, alone, draws, "everything is forgotten");
    if (trap_.throws || trap_.costly) return;
    beside(company, {.options = checked(), .share = 0.75}, alone, draws, "under a budget");
  }

  static void TearDownTestSuite() {
    std::cout << "[  company ] " << runs_ << " runs, " << infeasible_ << " infeasible, " << drawing_
              << " traps that draw; the company did " << rounds_ << " rounds\n";
    if (runs_ >= 40) EXPECT_GT(rounds_, static_cast<std::uint64_t>(runs_));
  }

 private:
  void beside(Company& company, Regime regime, const Outcome& alone, bool draws, const char* name) {
    SCOPED_TRACE(name);
    regime.company = &company;
    Tape tape;
    const std::uint64_t rounds = company.rounds();
    const Outcome outcome = with_tape(tape, With::recorded, [&] { return run(trap_, regime, alone); });
    ++runs_;
    rounds_ += company.rounds() - rounds;
    infeasible_ += outcome.infeasible;
    EXPECT_EQ(company.complaint(), "");
    expect_in_bounds(outcome);
    if (outcome.infeasible) return;
    if (draws && Tape::blank) {
      EXPECT_EQ(outcome.error, alone.error);
      return;
    }
    const Outcome expected = with_tape(tape, With::played, [&] { return run_plain(trap_); });
    EXPECT_EQ(outcome.error, expected.error);
    EXPECT_EQ(difference(without_generator(expected.results), without_generator(outcome.results)), "");
    if (expected.error.empty() && !expected.keeps_graph)
      EXPECT_EQ(outcome.kept, expected.kept) << "live bytes after the last step";
  }

  static inline std::int64_t runs_ = 0, infeasible_ = 0, drawing_ = 0;
  static inline std::uint64_t rounds_ = 0;
};

}  // namespace

void add_company(const Trap& trap) {
  add<CompanyTrap>("CompanyTrap", trap);
}

}  // namespace reprise::testing
