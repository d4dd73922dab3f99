#include "live_sides.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <utility>

#include "reprise/trace/amount.h"

namespace reprise::benchmarks {

Bytes asked_budget(const Settings& settings, Bytes plain_peak) {
  return parse_budget(settings.budget, plain_peak);
}

Sides::Sides(const Settings& settings) : settings_(settings), training_(settings.model, settings.optimizer) {
  checked_plain();
  const StepResult plain_step = checked_plain();
  ground_.level = plain_step.level;
  ground_.plain_peak = plain_step.peak - plain_step.level;
  ground_.budget = asked_budget(settings, ground_.plain_peak);
  tally_ = {};  // what LibTorch made once in the first step is in the level now

  constexpr double sample_seconds = 0.1;
  constexpr double most_steps = 16;
  steps_ = settings.steps > 0
               ? settings.steps
               : static_cast<int>(std::clamp(std::ceil(sample_seconds / plain_step.seconds), 1.0, most_steps));
}

double Sides::plain(int steps) {
  double seconds = 0;
  for (int i = 0; i < steps; ++i) seconds += checked_plain().seconds;
  return seconds;
}

double Sides::region() {
  double seconds = 0;
  for (int i = 0; i < steps_; ++i) {
    const StepResult result = training_.region({.every = settings_.region});
    note_level(result);
    seconds += result.seconds;
    tally_.region_peak = std::max(tally_.region_peak, result.peak - ground_.level);
    check_region();
  }
  return seconds;
}

double Sides::reprise(Session& session, int steps) {
  double seconds = 0;
  for (int i = 0; i < steps; ++i) {
    wait_for_plan(session);
    try {
      const StepResult result = training_.reprise(session);
      note_level(result);
      seconds += result.seconds;
      tally_.peak = std::max(tally_.peak, result.peak - ground_.level);
    } catch (const BudgetError& error) {
      throw NotKept(error, ground_);
    }
    wait_for_plan(session);
    check_reprise();
  }
  return seconds;
}

void Sides::advance() {
  if (!training_.has_optimizer()) return;
  training_.advance();
  reference_.reset();
}

Session Sides::session(Bytes budget, std::chrono::milliseconds planning_time) const {
  SessionOptions options = settings_.session;
  options.budget = ground_.level + budget;
  options.planning_time = planning_time;
  return Session(options);
}

StepResult Sides::checked_plain() {
  const StepResult result = training_.plain();
  note_level(result);
  Outcome outcome = training_.outcome();
  if (!reference_) {
    reference_ = std::move(outcome);
    return result;
  }
  auto different = reference_->gradients.first_difference(outcome.gradients);
  if (!different) different = reference_->buffers.first_difference(outcome.buffers);
  // Then no comparison means anything.
  if (different) throw Error("[bench live] two plain steps from the same start differ in " + *different);
  return result;
}

void Sides::check_reprise() {
  const Outcome outcome = training_.outcome();
  auto different = reference_->gradients.first_difference(outcome.gradients);
  if (!different) different = reference_->buffers.first_difference(outcome.buffers);
  if (different && tally_.bit_equal) std::cerr << "[bench live] NOT bit-equal to plain: " << *different << '\n';
  tally_.bit_equal = tally_.bit_equal && !different;
}

void Sides::check_region() {
  const Outcome outcome = training_.outcome();
  const bool gradients = !reference_->gradients.first_difference(outcome.gradients);
  const bool buffers = !reference_->buffers.first_difference(outcome.buffers);
  tally_.region_gradients_equal = tally_.region_gradients_equal && gradients;
  tally_.region_buffers_equal = tally_.region_buffers_equal && buffers;
}

void Sides::note_level(const StepResult& result) {
  tally_.level_growth = std::max(tally_.level_growth, result.level - ground_.level);
}

void Sides::wait_for_plan(Session& session) {
  const auto start = std::chrono::steady_clock::now();
  session.wait_for_plan();
  tally_.planning_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace reprise::benchmarks
