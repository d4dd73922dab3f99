#include "training_sides.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "reprise/trace/error.h"
#include "torch/memory/meter.h"
#include "training_device.h"

namespace reprise::benchmarks {
using namespace internal;

Sides::Sides(const std::string& model, const std::string& optimizer) : training_(model, optimizer) {
  meter::keep_all_pages();  // or a plain step pays for the pages that the limit of the step before gave back
  training_.plain();
  const StepResult step = training_.plain();
  reference_ = training_.outcome();
  level_ = step.level;
  plain_peak_ = step.peak - step.level;
  plain_seconds_ = step.seconds;
}

Sample Sides::plain(int steps) {
  Sample sample;
  for (int i = 0; i < steps; ++i) {
    const StepResult step = training_.plain();
    Outcome outcome = training_.outcome();
    if (!reference_) reference_ = outcome;
    if (const auto different = reference_->first_difference(outcome)) {
      throw Error("[bench] two plain steps from the same start differ in " + *different);
    }
    sample.add(checked(step, outcome));
  }
  return sample;
}

Sample Sides::rerun(const Regions& regions, int steps) {
  Sample sample;
  for (int i = 0; i < steps; ++i) {
    const StepResult step = training_.rerun(regions);
    sample.add(checked(step, training_.outcome()));
  }
  return sample;
}

Sample Sides::reprise(Session& session, int steps) {
  Sample sample;
  for (int i = 0; i < steps; ++i) {
    wait_for_plan(session);
    const StepResult step = training_.reprise(session);
    wait_for_plan(session);
    const Outcome outcome = training_.outcome();
    sample.add(checked(step, outcome));
    if (const auto different = reference_->first_difference(outcome)) {
      std::cerr << "[bench] NOT bit-equal to plain: " << *different << '\n';
    }
  }
  return sample;
}

Session Sides::session(SessionOptions options, Bytes budget) const {
  options.budget = level_ + budget;
  options.device = device_of_training().name();
  return Session(options);
}

Sample Sides::warm_up(Session& session, std::chrono::milliseconds planning_time) {
  constexpr int least = 4, most = 12;
  const bool plans = planning_time.count() > 0;
  Sample sample;
  for (int i = 1; i <= most; ++i) {
    sample.add(reprise(session));
    if (i >= least && (!plans || session.summary().followed_plan)) return sample;
  }
  std::cerr << "no plan was followed in " << most << " steps\n";
  return sample;
}

void Sides::advance() {
  if (!training_.has_optimizer()) return;
  training_.advance();
  reference_.reset();
}

// All bytes are above the level of the first steps: what sessions hold between steps counts against them.
Sample Sides::checked(const StepResult& step, const Outcome& outcome) {
  level_growth_ = std::max(level_growth_, step.level - level_);
  Sample sample{step.seconds, step.peak - level_, std::nullopt, true, step.wall_seconds};
  if (reference_->gradients.first_difference(outcome.gradients)) {
    sample.gradient_error = outcome.gradients.relative_error(reference_->gradients);
  }
  sample.buffers_equal = !reference_->buffers.first_difference(outcome.buffers);
  return sample;
}

void Sides::wait_for_plan(Session& session) {
  const auto start = std::chrono::steady_clock::now();
  session.wait_for_plan();
  waiting_for_plans_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ---- the loop ------------------------------------------------------------------------------------------------------

void Round::run(bool backwards) {
  std::vector<Side> order = sides_;
  if (backwards) std::reverse(order.begin(), order.end());
  Sample before = plain_sample();
  for (std::size_t i = 0; i < order.size(); i += between_) {
    const std::size_t end = std::min(i + between_, order.size());
    std::vector<std::optional<Sample>> samples;
    for (std::size_t k = i; k < end; ++k) samples.push_back(order[k].sample());
    const Sample after = plain_sample();
    for (std::size_t k = i; k < end; ++k) {
      const std::optional<Sample>& sample = samples[k - i];
      if (!sample) continue;
      order[k].into->steps.add(*sample);
      order[k].into->ratios.push_back(sample->seconds / ((before.seconds + after.seconds) / 2));
      order[k].into->wall.push_back(sample->wall / ((before.wall + after.wall) / 2));
    }
    before = after;
  }
}

Sample Round::plain_sample() {
  const Sample sample = plain_().value();
  result_.peak = std::max(result_.peak, sample.peak);
  result_.seconds.push_back(sample.seconds);
  return sample;
}

}  // namespace reprise::benchmarks
