// CompanyTrap: traps beside a thread that draws, allocates and trains (company.h).
//
// What the trap draws then depends on what the company draws in between. So the oracle is: the trap runs in a session
// beside the company, and its draws are written on a tape; then it runs plainly and alone, and the tape is played to
// it. Results have to be the same bits; the generator is the company's too and is not compared.
#include <ATen/record_function.h>

#include <atomic>
#include <functional>
#include <iostream>
#include <string_view>
#include <thread>

#include "torch/recipes/operator_table.h"
#include "torch/recipes/random_tape.h"
#include "torch/traps/company.h"
#include "torch/traps/trap_test.h"

namespace reprise::testing {
using namespace internal;
namespace {

// ---- tapes ---------------------------------------------------------------------------------------------------------

Outcome recorded(draws::Tape& tape, const std::function<Outcome()>& run) {
  draws::prepare();
  Outcome outcome;
  {
    draws::Recorder recorder;
    outcome = run();
    EXPECT_FALSE(recorder.incomplete());
    tape = recorder.take_tape();
  }
  return outcome;
}

Outcome played(const draws::Tape& tape, const std::function<Outcome()>& run) {
  const draws::Player player(tape);
  return run();
}

// ---- what traps draw -----------------------------------------------------------------------------------------------

struct Drawing {
  std::atomic<bool> here = false, elsewhere = false;  // on the thread of the test, and on others
  std::atomic<bool> by_itself = false;                // by an operator of a device that is given no generator
  std::thread::id thread;
};
Drawing drawn;

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& function) {
  const OperatorInfo* const info = find_operator(function);
  if (info && info->random) (std::this_thread::get_id() == drawn.thread ? drawn.here : drawn.elsewhere) = true;
  if (std::string_view(function.name()) == "aten::native_dropout") drawn.by_itself = true;
  return nullptr;
}

// Finds out which threads draw in the steps; building the model does not count.
void see_who_draws(const Trap& trap) {
  drawn.thread = std::this_thread::get_id();
  Trap watched = trap;
  watched.make = [&] {
    Work work = trap.make();
    drawn.here = drawn.elsewhere = drawn.by_itself = false;
    return work;
  };
  const at::CallbackHandle callback =
      at::addGlobalCallback(at::RecordFunctionCallback(see).scopes({at::RecordScope::FUNCTION}));
  (void)run_plain(watched);
  at::removeCallback(callback);
}

std::vector<Snapshot> without_generator(std::vector<Snapshot> results) {
  std::erase_if(results, [](const Snapshot& one) { return one.kind == "generator"; });
  return results;
}

// ---- the regime ----------------------------------------------------------------------------------------------------

class CompanyTrap : public TrapTest {
 public:
  using TrapTest::TrapTest;

  void TestBody() override {
    Company company;
    const Outcome alone = plain();
    see_who_draws(trap_);
    if (drawn.by_itself) REPRISE_ONLY_ON_CPU("whoever draws meanwhile disturbs an operator that is given no generator");
    drawing_ += drawn.here || drawn.elsewhere;
    SessionOptions options = checked();
    options.evict_everything = true;
    beside(company, {.options = options}, alone, "everything is evicted");
    if (trap_.throws || trap_.costly) return;
    beside(company, {.options = checked(), .share = 0.75}, alone, "under a budget");
  }

  static void TearDownTestSuite() {
    std::cout << "[  company ] " << runs_ << " runs, " << infeasible_ << " infeasible, " << drawing_
              << " traps that draw; the company did " << rounds_ << " rounds\n";
    if (runs_ >= 40) EXPECT_GT(rounds_, static_cast<std::uint64_t>(runs_));
  }

 private:
  void beside(Company& company, Regime regime, const Outcome& alone, const char* name) {
    SCOPED_TRACE(name);
    regime.company = &company;
    draws::Tape tape;
    const std::uint64_t rounds = company.rounds();
    const Outcome outcome = recorded(tape, [&] { return run(trap_, regime, alone); });
    ++runs_;
    rounds_ += company.rounds() - rounds;
    infeasible_ += outcome.infeasible;
    EXPECT_EQ(company.complaint(), "");
    expect_in_bounds(outcome);
    if (outcome.infeasible) return;
    if (drawn.elsewhere) {  // a tape is of one thread: here it is left to Verify::always
      EXPECT_EQ(outcome.error, alone.error);
      return;
    }
    const Outcome expected = played(tape, [&] { return run_plain(trap_); });
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
