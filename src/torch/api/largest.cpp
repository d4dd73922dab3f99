#include <algorithm>
#include <ostream>
#include <string>
#include <utility>

#include "reprise/report/fit_views.h"
#include "reprise/trace/amount.h"
#include "torch/api/find_largest.h"

namespace reprise {
namespace internal {
namespace {

using KeepsBudget = std::function<bool(std::int64_t size)>;

void check_options(const Session& session, const LargestOptions& options) {
  if (options.sizes.size() < 2) {
    throw BadOption("[largest] option sizes has " + std::to_string(options.sizes.size()) +
                    ": there must be two or more");
  }
  if (options.steps < 2) {
    throw BadOption("[largest] option steps is " + std::to_string(options.steps) + ": it must be 2 or more");
  }
  if (session.budget() == no_limit)
    throw BadOption(
        "[largest] the session has no budget, so that every size would fit; a share of what a step needs "
        "is one after two steps");
  if (!session.enabled()) throw BadOption("[largest] the session is switched off");
}

Trace recorded_trace(const Session& session, const LargestOptions& options, std::int64_t size,
                     const KeepsBudget& keeps_budget) {
  for (int i = 0; i < options.steps; ++i) {
    if (keeps_budget(size)) continue;
    throw BadOption("[largest] option sizes has " + std::to_string(size) + ", which does not fit the budget of " +
                    format_bytes(session.budget()) + " itself: the sizes to record have to be small");
  }
  auto trace = session.trace();
  if (!trace) {
    throw BadInput("", "size " + std::to_string(size),
                   "the step was not recorded from its first operator to the end of backward");
  }
  return *std::move(trace);
}

// The next one to try, if this did not fit: what a plan can keep, the first step, without one, misses by little.
std::int64_t next_smaller(std::int64_t size) {
  return size - std::max<std::int64_t>(1, size / 16);
}

// Finds the largest size up to the predicted one that keeps the budget. False: that is the one it was before.
bool confirm(Largest& largest, const KeepsBudget& keeps_budget) {
  const std::int64_t certain = largest.size;
  const std::int64_t predicted = largest.fit.largest ? largest.fit.points[*largest.fit.largest].size : certain;
  for (largest.size = std::max(predicted, certain); !keeps_budget(largest.size);) {
    largest.refused.push_back(largest.size);
    if (largest.size <= certain) {
      throw BadOption("[largest] size " + std::to_string(largest.size) +
                      " kept the budget when it was recorded, and does not do so any more");
    }
    largest.size = std::max(next_smaller(largest.size), certain);
  }
  return largest.size > certain;
}

// What grew between the recorded sizes, and not because of them, made the prediction too careful.
bool leaves_much_free(const Session& session, std::int64_t at_most, const Largest& largest) {
  const Bytes budget = session.budget();
  return largest.refused.empty() && largest.size < at_most && session.summary().peak_last_step() < budget - budget / 8;
}

// False: the step of this size has no trace.
bool replace_smallest(std::vector<SizedTrace>& recorded, const Session& session, std::int64_t size) {
  auto trace = session.trace();
  if (!trace) return false;
  recorded.erase(recorded.begin());
  recorded.push_back({size, *std::move(trace)});
  return true;
}

}  // namespace

Largest find_largest(const Session& session, const LargestOptions& options, const KeepsBudget& keeps_budget) {
  check_options(session, options);
  std::vector<SizedTrace> recorded;
  std::vector<std::int64_t> sizes = options.sizes;
  std::sort(sizes.begin(), sizes.end());
  for (const std::int64_t size : sizes) {
    recorded.push_back({size, recorded_trace(session, options, size, keeps_budget)});
  }
  FitOptions fit;
  fit.budget = session.budget();
  fit.at_most = options.at_most.value_or(64 * recorded.back().size);
  fit.time_limit = options.time_limit;
  fit.progress = options.progress;
  fit.cancel = options.cancel;
  Largest largest;
  largest.size = recorded.back().size;  // it has kept the budget already
  do {
    largest.fit = make_fit(Growth(recorded), fit);
  } while (confirm(largest, keeps_budget) && leaves_much_free(session, *fit.at_most, largest) &&
           replace_smallest(recorded, session, largest.size));
  const Summary summary = session.summary();
  largest.peak = summary.peak_last_step();
  largest.seconds = summary.step_seconds;
  return largest;
}

}  // namespace internal

Largest Session::largest(const LargestOptions& options, const std::function<void(std::int64_t size)>& train) {
  return internal::find_largest(*this, options, [&](std::int64_t size) {
    try {
      const auto step = this->step();
      train(size);
      return true;
    } catch (const BudgetError&) {
      return false;
    }
  });
}

std::string to_text(const Largest& largest) {
  std::string text = to_text(largest.fit) + "\n" + advice(largest.fit) + "\n";
  for (const std::int64_t size : largest.refused) {
    text += "A real step of size " + std::to_string(size) + " did not keep the budget.\n";
  }
  return text + "A real step of size " + std::to_string(largest.size) + " kept it, with a peak of " +
         format_bytes(largest.peak) + ".\n";
}

std::ostream& operator<<(std::ostream& out, const Largest& largest) {
  return out << to_text(largest);
}

}  // namespace reprise
