// Random programs whose shapes differ in every step: one session goes through all of them, and gives the same bits.
//
//   reprise_torch_random_tests --gtest_filter='RandomShapes.*'                      60 programs, seeds 0 to 59
//   REPRISE_SEED=17 reprise_torch_random_tests --gtest_filter='RandomShapes.*'      exactly one
//
// REPRISE_LONG=1 makes it 2000, REPRISE_PROGRAMS as many as you like.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>

#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/random/random_program.h"
#include "torch/values/recordings.h"

namespace reprise::random_shapes {
using namespace internal;
namespace {

using testing::Machine;
using testing::meter_here;
using testing::options_here;
using testing::Program;
using testing::Snapshot;

// How the steps of a program go, drawn from its seed.
struct RecipeCursor {
  std::vector<std::int64_t> sizes;  // by step: extents are so much larger. No two in a row are the same
  double share = 0;                 // the budget is level + share * (plain peak - level), of the step with the most
  bool planned = false;             // and else the online policy decides
  bool repeats = false;             // steps that do not fit are planned and run again
};

RecipeCursor draw_course(std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x517cc1b727220a95);
  const auto number = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  RecipeCursor cursor;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t last = cursor.sizes.empty() ? 0 : cursor.sizes.back();
    cursor.sizes.push_back((last + 1 + number(6)) % 7);
  }
  cursor.sizes.push_back(cursor.sizes.front());  // one that was met before
  const double drawn = 0.01 * number(101);
  cursor.share = 1 - 0.4 * drawn * drawn * drawn;  // rather a wide one than a tight one
  cursor.planned = number(2) == 0;
  cursor.repeats = cursor.planned && number(2) == 0 && testing::here().is_cpu();  // a copy of the process has no others
  return cursor;
}

struct Outcome {
  std::vector<std::vector<Snapshot>> steps;
  std::string error;
  bool infeasible = false;
  Bytes peak = 0, share = 0, leaked = 0;  // share: what the cursor says of each step, the most of them
};

void run_step(Machine& machine, Session* session, bool repeats) {
  if (session && repeats) return session->run([&] { machine.step(); });
  std::optional<Step> step;
  if (session) step = session->step();
  machine.step();
}

void run_steps(const std::vector<Program>& programs, const RecipeCursor& cursor, Session* session, Outcome& outcome) {
  torch::manual_seed(programs[0].seed);
  for (const Program& program : programs) {
    Machine machine(program, false);
    const Bytes level = meter_here().live();
    meter_here().mark_peak();
    run_step(machine, session, cursor.repeats);
    const Bytes peak = session ? session->summary().peak_last_step() : meter_here().peak();
    outcome.peak = std::max(outcome.peak, peak);
    outcome.share =
        std::max(outcome.share, level + static_cast<Bytes>(cursor.share * static_cast<double>(peak - level)));
    outcome.steps.push_back(testing::snapshots(machine.results()));
    outcome.steps.back().push_back(testing::generator_snapshot());
    machine.drop();
    if (session) session->wait_for_plan();
  }
}

Outcome run(const std::vector<Program>& programs, const RecipeCursor& cursor, Session* session) {
  Outcome outcome;
  const Bytes before = meter_here().live();
  try {
    run_steps(programs, cursor, session, outcome);
  } catch (const BudgetError& error) {
    outcome.infeasible = true;
    outcome.error = error.what();
  } catch (const std::exception& error) {
    outcome.error = testing::text_of(error);
  }
  // An engine that was interrupted has unfinished tasks, with gradients, until the next backward of the thread.
  if (!outcome.error.empty()) {
    testing::settle_here();
    torch::ones({1}, torch::requires_grad()).backward();
  }
  outcome.leaked = meter_here().live() - before;
  return outcome;
}

struct Count {
  int programs = 0, skipped = 0, infeasible = 0;
  std::int64_t replays = 0, traces = 0;
};

// Empty: the session gave what the plain steps did.
std::string complaint(std::uint64_t seed, Count& count) {
  const RecipeCursor cursor = draw_course(seed);
  std::vector<Program> programs;
  for (const std::int64_t size : cursor.sizes) programs.push_back(testing::make_program(seed, size));
  const Outcome plain = run(programs, cursor, nullptr);
  ++count.programs;
  // What LibTorch itself refuses at one of the sizes, or never frees, has tests of its own (random_program_test.cpp).
  if (!plain.error.empty() || plain.leaked != 0) return ++count.skipped, "";
  SessionOptions options = options_here();
  options.budget = plain.share;
  options.planning_time = std::chrono::milliseconds(cursor.planned ? 3 : 0);
  options.planning_share = std::numeric_limits<double>::infinity();
  Session session(options);
  const Outcome outcome = run(programs, cursor, &session);
  const Summary summary = session.summary();
  count.infeasible += outcome.infeasible;
  count.replays += summary.replays;
  count.traces += summary.traces;
  std::ostringstream why;
  if (outcome.peak > plain.share) why << "a peak of " << outcome.peak << " in " << plain.share << "\n";
  if (outcome.leaked != 0) why << outcome.leaked << " bytes leaked\n";
  if (!outcome.error.empty() && !outcome.infeasible) why << outcome.error << "\n";
  for (std::size_t i = 0; i < outcome.steps.size(); ++i) {
    const std::string different = testing::difference(plain.steps[i], outcome.steps[i]);
    if (!different.empty()) why << "step " << i << ": " << different << "\n";
  }
  if (!Recordings::of_process().all().empty()) why << "recordings are left\n";
  if (why.str().empty()) return "";
  for (const Program& program : programs) why << in_words(program);
  return why.str();
}

TEST(RandomShapes, InEveryStepGiveTheSameBits) {
  const auto from_environment = [](const char* name) -> std::optional<std::uint64_t> {
    const char* const text = std::getenv(name);
    return text ? std::optional<std::uint64_t>(std::strtoull(text, nullptr, 10)) : std::nullopt;
  };
  const auto one = from_environment("REPRISE_SEED");
  const std::uint64_t usual = std::getenv("REPRISE_LONG") ? 2000 : 60;
  const std::uint64_t first = one.value_or(0);
  const std::uint64_t end = one ? *one + 1 : from_environment("REPRISE_PROGRAMS").value_or(usual);
  Count count;
  for (std::uint64_t seed = first; seed < end; ++seed) EXPECT_EQ(complaint(seed, count), "") << "seed " << seed;
  std::cout << "[ programs ] " << count.programs << ", " << count.skipped << " skipped, " << count.infeasible
            << " infeasible, " << count.traces << " traces, " << count.replays << " replays\n";
  if (one) return;
  EXPECT_LT(count.skipped, count.programs / 2);
  EXPECT_LT(count.infeasible, count.programs / 2);
  EXPECT_GT(count.replays, 0);
}

}  // namespace
}  // namespace reprise::random_shapes
