#include "torch/api/run_step.h"

#include <ATen/ops/ones.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "reprise/torch/measurement.h"
#include "reprise/trace/amount.h"
#include "torch/api/rehearsal.h"
#include "torch/memory/arbiter.h"
#include "torch/recipes/rollback.h"
#include "torch/session/thread_state.h"

namespace reprise::internal {
namespace {

// Copies of what a step overwrites: statistics and counters, not gradients and parameters of a large model.
Bytes most_copied(Bytes budget) {
  constexpr Bytes part = 16;
  return budget / part;
}

// A step that could not be repeated under a plan, whatever it came to.
bool has_no_plans(SessionState& session) {
  const SessionOptions& options = session.options();
  session.look_for_device();
  return options.evict_everything || options.planning_time.count() == 0 || options.planning_share <= 0 ||
         !session.has_device() || session.context().accelerator();
}

// Outside of an operator and of backward, once a backward has ended: an optimizer, or whatever comes after training.
bool is_after_training(const SessionState& session, const BudgetError& error) {
  const Arbiter lock;
  return error.facts().where.empty() && session.passes().ended() > 0;
}

// What a backward that was interrupted had under way stays in the engine, with its gradients, until the next one of the
// thread.
void clear_engine() {
  at::ones({1}).requires_grad_().backward();
}

std::string why_not(const SessionState& session, const BudgetError& error, const Undo& undo) {
  if (is_after_training(session, error)) return "it failed after backward, where an optimizer may have begun";
  return undo.why_not_replayable();
}

Rehearsal rehearsed(SessionState& session, const std::function<void()>& train, const MakeCopy& make_copy,
                    const BudgetError& error) try {
  return rehearse(session, train, make_copy);
} catch (const MeasurementError& problem) {
  BudgetError::Facts facts = error.facts();
  facts.not_repeated = "The step was not run again under a plan, because it cannot be planned without its memory: " +
                       std::string(problem.what());
  throw BudgetError(std::move(facts));
}

[[noreturn]] void throw_infeasible(const BudgetError& error, const Rehearsal& rehearsal) {
  BudgetError::Facts facts = error.facts();
  facts.smallest_feasible = rehearsal.smallest.feasible;
  facts.floor = rehearsal.smallest.floor;
  facts.floor_set_by = rehearsal.smallest.floor_set_by;
  facts.not_repeated = "The step was planned without its memory, and no plan was found for this budget";
  throw BudgetError(std::move(facts));
}

[[noreturn]] void throw_not_repeated(const BudgetError& error, const Rehearsal& rehearsal, const std::string& why) {
  Bytes peak = 0;
  for (const AnnouncedPlan& plan : rehearsal.plans) peak = std::max(peak, plan.executable->peak);
  BudgetError::Facts facts = error.facts();
  facts.not_repeated = "This budget will do: a plan has a peak of " + format_bytes(peak) +
                       ", and the next step follows it. This one was not run again, because " + why +
                       ". Put back what it changed, and run it again";
  throw BudgetError(std::move(facts));
}

[[noreturn]] void throw_failed_again(const BudgetError& error) {
  BudgetError::Facts facts = error.facts();
  facts.not_repeated =
      "The step was run again under a plan for this budget, and did not fit either: it did something else than when it "
      "was planned without its memory, or its operators needed more room, as they may on several threads. A somewhat "
      "larger budget will do";
  throw BudgetError(std::move(facts));
}

}  // namespace

void run_step(SessionState& session, const std::function<void()>& step, const std::function<void()>& train,
              const MakeCopy& make_copy) {
  Bytes budget = no_limit;
  {
    const Arbiter lock;
    if (session.enabled()) budget = session.budget();
  }
  if (budget == no_limit || has_no_plans(session) || this_thread().step) return step();

  std::optional<BudgetError> error;
  std::string why_not_replayable;
  {
    Undo undo(most_copied(budget));
    try {
      return step();
    } catch (const BudgetError& thrown) {
      error = thrown;
    }
    clear_engine();
    why_not_replayable = why_not(session, *error, undo);
    if (why_not_replayable.empty()) undo.put_back();
  }
  Rehearsal rehearsal = rehearsed(session, train, make_copy, *error);
  if (!rehearsal.has_plans()) throw_infeasible(*error, rehearsal);
  {
    const Arbiter lock;
    session.announce(rehearsal.plans, rehearsal.planning_seconds);
  }
  if (!why_not_replayable.empty()) throw_not_repeated(*error, rehearsal, why_not_replayable);
  try {
    step();
  } catch (const BudgetError& again) {
    throw_failed_again(again);
  }
}

}  // namespace reprise::internal

namespace reprise {

void Session::run(const std::function<void()>& train) {
  internal::run_step(
      *state_,
      [&] {
        const auto step = this->step();
        train();
      },
      train, &fork);
}

}  // namespace reprise
