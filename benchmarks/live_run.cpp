// Runs steps as training does: without waiting for plans, except for models whose steps differ.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "bench_live.h"
#include "reprise/trace/amount.h"
#include "torch/libtorch/clock.h"
#include "torch/memory/meter.h"
#include "training_run.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

double process_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double thread_seconds() {
  return 1e-6 * thread_microseconds();
}

// The plain peak of the largest step; a model whose steps are all the same has it in the first.
void take_ground(const LiveSettings& settings, Training& training, RunReport& report) {
  const int steps = training.changing() ? report.steps : 1;
  (void)training.plain();  // makes what LibTorch makes once
  for (int i = 0; i < steps; ++i) {
    training.seed(static_cast<std::uint64_t>(i));
    const StepResult step = training.plain();
    report.level = step.level;
    report.plain_peak = std::max(report.plain_peak, step.peak - step.level);
  }
  report.budget = parse_budget(settings.budget, report.plain_peak);
}

}  // namespace

void measure_run(const LiveSettings& settings, RunReport& report) {
  meter::keep_all_pages();  // or a plain step pays for the pages that the limit of the step before gave back
  Training training(settings.model, settings.optimizer);
  report.model = settings.model;
  report.optimizer = settings.optimizer;
  report.steps = settings.run;
  take_ground(settings, training, report);
  SessionOptions options = settings.session;
  options.budget = report.level + report.budget;
  Session session(options);
  const double others = process_seconds() - thread_seconds();
  for (int i = 0; i < report.steps; ++i) {
    training.seed(static_cast<std::uint64_t>(i));
    const StepResult plain = training.plain();
    const Outcome expected = training.outcome();
    const StepResult step = training.reprise(session);
    if (const auto different = training.outcome().first_difference(expected)) {
      std::cerr << "[bench] step " << i << " is NOT bit-equal to plain: " << *different << '\n';
      report.bit_equal = false;
    }
    report.peak = std::max(report.peak, step.peak - report.level);
    report.plain += {plain.thread_seconds, plain.thread_seconds, plain.wall_seconds};
    report.reprise += {step.thread_seconds, step.thread_seconds, step.wall_seconds};
    report.followed += session.summary().followed_plan ? 1 : 0;
    if ((i + 1) % 20 == 0) {
      std::cerr << "step " << i + 1 << ": thread " << report.reprise.thread / report.plain.thread << '\n';
    }
  }
  report.reprise.process += process_seconds() - thread_seconds() - others;
  report.summary = session.summary();
  report.growth = growth_of_child(arguments_of_child(settings, report.budget));
}

}  // namespace reprise::benchmarks
