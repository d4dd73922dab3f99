#include "compare_steps.h"

#include <algorithm>
#include <sstream>

#include "reprise/trace/error.h"

namespace reprise::benchmarks {

Regions regions_of(const std::string& way) {
  std::istringstream words(way);
  std::string word;
  std::int64_t number = 1;
  words >> word >> number;
  if (word == "every") return {.every = number};
  if (word == "first") return {.every = 1, .blocks = number};
  if (word == "levels") return {.every = 1};
  throw BadOption("[bench compare] C++ does not know the way '" + way + "'");
}

Steps::Steps(const std::string& model) : training_(model, "none") {
  training_.plain();
  const StepResult result = training_.plain();
  reference_ = training_.outcome();
  level_ = result.level;
  plain_peak_ = result.peak - result.level;
}

Sample Steps::plain() {
  return sample_of(training_.plain());
}

Sample Steps::region(const Regions& regions) {
  return sample_of(training_.region(regions));
}

Sample Steps::reprise(Session& session) {
  session.wait_for_plan();
  const StepResult result = training_.reprise(session);
  session.wait_for_plan();
  return sample_of(result);
}

Session Steps::settled_session(Bytes budget, std::chrono::milliseconds planning_time) {
  constexpr int least = 4, most = 12;
  SessionOptions options;
  options.budget = level_ + std::max(budget, plain_peak_);
  options.planning_time = planning_time;
  Session session(options);
  static_cast<void>(reprise(session));
  session.budget(level_ + budget);
  for (int i = 1; i <= most; ++i) {
    static_cast<void>(reprise(session));
    if (i >= least && session.summary().followed_plan) break;
  }
  return session;
}

// All bytes are above the level of the first steps: what sessions hold between steps counts against them.
Sample Steps::sample_of(const StepResult& result) const {
  const Outcome outcome = training_.outcome();
  Sample sample{result.seconds, result.peak - level_, std::nullopt, true};
  if (reference_.gradients.first_difference(outcome.gradients)) {
    sample.gradient_error = outcome.gradients.relative_error(reference_.gradients);
  }
  sample.buffers_equal = !reference_.buffers.first_difference(outcome.buffers);
  return sample;
}

}  // namespace reprise::benchmarks
