// Random programs give the same bits plainly and under random budgets and policies.
//
//   reprise_torch_random_tests --gtest_filter='RandomPrograms.*'                          2000 programs, seeds 0 to
//   1999 REPRISE_PROGRAMS=100000 reprise_torch_random_tests --gtest_filter='RandomPrograms.*'  as many as you like
//   REPRISE_SEED=17 reprise_torch_random_tests --gtest_filter='RandomPrograms.First'      exactly one, said in words
//
// REPRISE_LONG=1 makes it 40000. reprise_tests_on_device has the same programs on the simulated accelerator, 100 and
// 2000 of them. A failure says the seed and the last command, with the program made as small as it still fails.
#include "torch/random/random_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>

#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/values/recordings.h"

namespace reprise {
using namespace internal;
namespace {

using testing::difference;
using testing::generator_snapshot;
using testing::Machine;
using testing::make_program;
using testing::meter_here;
using testing::options_here;
using testing::Program;
using testing::Snapshot;
using testing::snapshots;
using testing::text_of;

// ---- regimes -------------------------------------------------------------------------------------------------------

// How a program is run. Drawn from its seed.
struct Regime {
  bool session = false;
  bool checkpoints = false;
  SessionOptions options = options_here();
  double share = 0;           // if not zero, the budget is level + share * (plain peak - level)
  bool build_inside = false;  // the leaves are made inside the first step
  bool policy = false;        // one that is drawn from the seed, too
  int steps = 1;
};

// By operator: mostly the planner's decision, sometimes ours, and rarely one that needs memory.
Policy draw_policy(std::uint64_t seed) {
  return [random = std::make_shared<std::mt19937_64>(seed)](const PolicyOperator&) {
    const auto drawn = (*random)() % 32;
    return drawn < 8 ? Choice::evict : drawn < 12 ? Choice::pack : drawn < 14 ? Choice::keep : Choice::automatic;
  };
}

Regime draw_regime(const Program& program) {
  std::mt19937_64 random(program.seed ^ 0x9e3779b97f4a7c15);
  const auto number = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  Regime regime;
  regime.checkpoints = number(2) == 0;
  regime.steps = number(3) > 0 ? 1 : 2;
  regime.options.planning_time = std::chrono::milliseconds(0);
  regime.options.verify = number(2) == 0 ? Verify::always : Verify::first_time;
  regime.options.pack = number(3) > 0;
  const double drawn = 0.01 * number(101), share = 1 - 0.5 * drawn * drawn;  // rather a wide one than a tight one
  const bool inside = number(4) == 0;
  switch (number(10)) {
    case 0:
    case 1:  // without a budget; only checkpoint(), if nothing is written that nobody would see then
      regime.checkpoints |= number(2) == 0;
      regime.session = !regime.checkpoints || number(2) == 0 || uses(program, "data_mul_");
      regime.build_inside = inside;
      break;
    case 2:
    case 3:
    case 4:  // everything is evicted
      regime.session = true;
      regime.options.evict_everything = true;
      regime.build_inside = inside;
      break;
    case 5:  // planned
      regime.session = true;
      regime.options.planning_time = std::chrono::milliseconds(3);
      regime.steps = 3;
      regime.share = share;
      break;
    default:  // the online policy within a budget
      regime.session = true;
      regime.share = share;
      regime.policy = number(3) == 0;
  }
  if (regime.policy) regime.options.policy = draw_policy(program.seed);
  return regime;
}

std::string in_words(const Regime& regime) {
  std::ostringstream out;
  out << regime.steps << " steps" << (regime.checkpoints ? ", checkpoint() where the program has it" : "");
  if (!regime.session) return out.str() + ", no session";
  out << ", verify " << (regime.options.verify == Verify::always ? "always" : "first_time")
      << (regime.options.pack ? ", packing" : "") << (regime.options.evict_everything ? ", evict_everything" : "")
      << (regime.build_inside ? ", leaves made inside the step" : "") << (regime.policy ? ", a policy" : "");
  if (regime.share > 0) out << ", budget at " << regime.share << " of the plain peak";
  out << ", " << regime.options.planning_time.count() << " ms of planning";
  return out.str();
}

// ---- running a program ---------------------------------------------------------------------------------------------

struct Outcome {
  std::vector<Snapshot> results;  // of all steps, each followed by the generator
  std::string error;
  bool infeasible = false;  // a BudgetError was thrown: `results` are those before
  bool refused = false;     // a ChangedInputError was thrown
  Bytes level = 0, peak = 0, budget = no_limit;
  Bytes kept = 0;    // live after the last step, when the machine has dropped its tensors
  Bytes leaked = 0;  // live after everything was destroyed
  Summary summary;
};

void take(Outcome& outcome, const Machine& machine) {
  for (Snapshot& one : snapshots(machine.results())) outcome.results.push_back(std::move(one));
  outcome.results.push_back(generator_snapshot());
}

void run_step(Machine& machine, Session* session, Outcome& outcome) {
  std::optional<Step> step;
  if (session) step = session->step();
  meter_here().mark_peak();
  try {
    machine.step();
  } catch (...) {
    outcome.peak = std::max(outcome.peak, meter_here().peak());
    throw;
  }
  outcome.peak = std::max(outcome.peak, meter_here().peak());
}

// plain: what the budget is a share of; nullptr: without a budget.
void run_steps(const Program& program, const Regime& regime, const Outcome* plain, Session* session, Outcome& outcome) {
  const Bytes before = meter_here().live();
  torch::manual_seed(program.seed);
  std::optional<Machine> machine;
  {
    std::optional<Step> step;
    if (regime.build_inside && session) step = session->step();
    machine.emplace(program, regime.checkpoints);
  }
  outcome.level = meter_here().live();
  if (session && plain && regime.share > 0) {
    const auto activations = static_cast<double>(plain->peak - plain->level);
    session->budget(outcome.budget = outcome.level + static_cast<Bytes>(regime.share * activations));
  }
  for (int i = 0; i < regime.steps; ++i) {
    run_step(*machine, session, outcome);
    take(outcome, *machine);
    machine->drop();
    outcome.kept = meter_here().live() - before;
    if (session) {
      session->wait_for_plan();
      outcome.summary = session->summary();
    }
  }
}

Outcome run(const Program& program, const Regime& regime, const Outcome* plain, Session* session) {
  Outcome outcome;
  const Bytes before = meter_here().live();
  try {
    run_steps(program, regime, plain, session, outcome);
  } catch (const BudgetError& error) {
    outcome.infeasible = true;
    outcome.error = text_of(error);
  } catch (const ChangedInputError& error) {
    outcome.refused = true;
    outcome.error = text_of(error);
  } catch (const std::exception& error) {
    outcome.error = text_of(error);
  }
  // An engine that was interrupted has unfinished tasks, with gradients, until the next backward of the thread.
  if (!outcome.error.empty()) {
    testing::settle_here();
    torch::ones({1}, torch::requires_grad()).backward();
  }
  outcome.leaked = meter_here().live() - before;
  return outcome;
}

Outcome run_plain(const Program& program, const Regime& regime) {
  Regime plain;
  plain.steps = regime.steps;
  return run(program, plain, nullptr, nullptr);
}

// ---- comparing -----------------------------------------------------------------------------------------------------

struct Count {
  int programs = 0, throwing = 0, cyclic = 0, operators = 0;
  int limited = 0, infeasible = 0, planned = 0, followed = 0, refused = 0;
  std::int64_t replays = 0;
};

// Empty: the regime gave what the plain run did.
std::string complaint(const Outcome& plain, const Outcome& outcome) {
  std::ostringstream out;
  if (outcome.leaked != 0) out << outcome.leaked << " bytes leaked\n";
  if (outcome.peak > outcome.budget)
    out << "a peak of " << outcome.peak << " in a budget of " << outcome.budget << "\n";
  if (outcome.infeasible) return out.str();
  if (outcome.error.empty() != plain.error.empty()) {
    out << "an error instead of the plain run's:\n  " << outcome.error << "\n  " << plain.error << "\n";
  }
  const std::string different = difference(plain.results, outcome.results);
  if (!different.empty()) out << different << "\n";
  if (plain.error.empty() && outcome.kept != plain.kept) {
    out << outcome.kept << " bytes live after the last step, plainly " << plain.kept << "\n";
  }
  return out.str();
}

// Empty: the program behaves in this regime.
std::string failure(const Program& program, const Regime& regime, Count& count) {
  const Outcome plain = run_plain(program, regime);
  // What LibTorch saves of a tensor that is then changed in place can be a cycle, and then nobody frees it.
  if (plain.leaked != 0) return ++count.cyclic, "";
  std::string why;
  if (regime.session) {
    Session session(regime.options);
    const Outcome outcome = run(program, regime, &plain, &session);
    why += complaint(plain, outcome);
    count.replays += outcome.summary.replays;
    if (regime.share > 0) {
      ++count.limited;
      count.infeasible += outcome.infeasible;
    }
    if (regime.options.planning_time.count() > 0 && !outcome.infeasible) {
      ++count.planned;
      count.followed += outcome.summary.followed_plan;
    }
    if (outcome.infeasible) {  // the session goes on, with a budget that suffices
      session.budget(no_limit);
      const std::string after = complaint(plain, run(program, regime, nullptr, &session));
      if (!after.empty()) why += "after a BudgetError: " + after;
    }
  } else {
    const Outcome outcome = run(program, regime, &plain, nullptr);
    // What is written where nobody records, and is needed to replay, is an error of checkpoint()'s contract.
    if (outcome.refused) {
      ++count.refused;
    } else {
      why += complaint(plain, outcome);
    }
  }
  count.throwing += !plain.error.empty();
  if (!Recordings::of_process().all().empty())
    why += std::to_string(Recordings::of_process().all().size()) + " recordings left\n";
  return why;
}

// As few operations and steps as still fail.
void shrink(Program& program, Regime& regime) {
  Count ignored;
  const auto fails = [&](const Program& smaller, const Regime& with) {
    return !failure(smaller, with, ignored).empty();
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (int i = size(program) - 1; i >= 0; --i) {
      if (i >= size(program)) continue;
      Program candidate = without(program, i);
      if (!fails(candidate, regime)) continue;
      program = std::move(candidate);
      smaller = true;
    }
  }
  const auto try_without = [&](bool Program::*flag, bool value) {
    Program candidate = program;
    candidate.*flag = value;
    if (fails(candidate, regime)) program = candidate;
  };
  for (std::size_t i = program.leaves.size(); i-- > 0;) {
    Program candidate = without_leaf(program, i);
    if (fails(candidate, regime)) program = candidate;
  }
  try_without(&Program::accumulates, false);
  try_without(&Program::updates, false);
  try_without(&Program::drops_inside, true);
  for (std::size_t i = program.held.size(); i-- > 0;) {
    Program candidate = program;
    candidate.held.erase(candidate.held.begin() + static_cast<std::ptrdiff_t>(i));
    if (fails(candidate, regime)) program = candidate;
  }
  const auto try_regime = [&](auto change) {
    Regime candidate = regime;
    change(candidate);
    if (fails(program, candidate)) regime = candidate;
  };
  while (regime.steps > 1) {
    const int before = regime.steps;
    try_regime([](Regime& r) { --r.steps; });
    if (regime.steps == before) break;
  }
  try_regime([](Regime& r) { r.checkpoints = false; });
  try_regime([](Regime& r) { r.build_inside = false; });
  try_regime([](Regime& r) { r.options.pack = false; });
}

// ---- the seed of what ends the process -----------------------------------------------------------------------------

volatile std::sig_atomic_t current_seed = 0;

extern "C" void say_seed(int signal) {
  char text[] = "\nRandomPrograms ended by a signal: REPRISE_SEED=          \n";
  char* digit = text + sizeof(text) - 3;
  for (auto seed = static_cast<std::uint32_t>(current_seed); digit[0] == ' '; seed /= 10) {
    *digit-- = static_cast<char>('0' + seed % 10);
    if (seed < 10) break;
  }
  (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class SayingSeeds {
 public:
  SayingSeeds() {
#ifndef REPRISE_SANITIZED  // a sanitizer has its own
    for (std::size_t i = 0; i < std::size(signals); ++i) before_[i] = std::signal(signals[i], say_seed);
#endif
  }
  ~SayingSeeds() {
#ifndef REPRISE_SANITIZED
    for (std::size_t i = 0; i < std::size(signals); ++i) std::signal(signals[i], before_[i]);
#endif
  }
  SayingSeeds(const SayingSeeds&) = delete;
  SayingSeeds& operator=(const SayingSeeds&) = delete;

 private:
  static constexpr int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
  void (*before_[std::size(signals)])(int) = {};
};

// ---- the tests -----------------------------------------------------------------------------------------------------

#ifdef REPRISE_SANITIZED
constexpr std::uint64_t few = 200, many = 4000;
#else
constexpr std::uint64_t few = 2000, many = 40000;
#endif
constexpr std::uint64_t few_on_device = 100, many_on_device = 2000;

std::uint64_t usual_programs() {
  const bool long_run = std::getenv("REPRISE_LONG") != nullptr;
  if (!testing::here().is_cpu()) return long_run ? many_on_device : few_on_device;
  return long_run ? many : few;
}

void check(std::uint64_t seed, Count& count, bool said) {
  current_seed = static_cast<std::sig_atomic_t>(seed);
  const Program program = make_program(seed);
  ++count.programs;
  count.operators += size(program);
  if (said) std::cout << in_words(program);
  const Regime regime = draw_regime(program);
  if (said) std::cout << in_words(regime) << "\n";
  const std::string why = failure(program, regime, count);
  if (why.empty()) return;
  Program smallest = program;
  Regime with = regime;
  shrink(smallest, with);
  Count ignored;
  ADD_FAILURE() << "seed " << seed << ", " << in_words(regime) << ":\n"
                << why << "made smaller, " << in_words(with) << ":\n"
                << failure(smallest, with, ignored) << in_words(smallest) << "again: REPRISE_SEED=" << seed
                << " reprise_torch_random_tests --gtest_filter='RandomPrograms.First'\n";
}

std::optional<std::uint64_t> from_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text ? std::optional<std::uint64_t>(std::strtoull(text, nullptr, 10)) : std::nullopt;
}

void check_quarter(std::uint64_t quarter) {
  const SayingSeeds saying;
  Count count;
  if (const auto seed = from_environment("REPRISE_SEED")) {
    if (quarter > 0) GTEST_SKIP() << "one seed is asked for";
    return check(*seed, count, true);
  }
  const std::uint64_t all = from_environment("REPRISE_PROGRAMS").value_or(usual_programs());
  for (std::uint64_t seed = all * quarter / 4; seed < all * (quarter + 1) / 4; ++seed) check(seed, count, false);
  std::cout << "[ programs ] " << count.programs << " of " << count.operators / std::max(count.programs, 1)
            << " operators, " << count.throwing << " runs that throw, " << count.cyclic << " that leak plainly, "
            << count.limited << " within a budget, " << count.infeasible << " infeasible, " << count.followed << " of "
            << count.planned << " followed a plan, " << count.replays << " replays, " << count.refused
            << " refused by checkpoint()\n";
  if (count.programs < 40) return;
  EXPECT_LT(count.infeasible, count.limited / 2);
  EXPECT_LT(count.throwing, count.programs / 4);
  EXPECT_GT(count.replays, 0);
}

TEST(RandomPrograms, First) {
  check_quarter(0);
}
TEST(RandomPrograms, Second) {
  check_quarter(1);
}
TEST(RandomPrograms, Third) {
  check_quarter(2);
}
TEST(RandomPrograms, Fourth) {
  check_quarter(3);
}

}  // namespace
}  // namespace reprise
