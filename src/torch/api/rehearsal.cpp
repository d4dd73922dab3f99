#include "torch/api/rehearsal.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "reprise/trace/files.h"
#include "torch/api/dry_run.h"
#include "torch/hooks/steps.h"
#include "torch/libtorch/clock.h"
#include "torch/memory/arbiter.h"
#include "torch/plans/executable_plan_bytes.h"
#include "torch/session/planning_jobs.h"

namespace reprise::internal {
namespace {

constexpr const char* rehearsing = "[run] ";

// ---- in the copy ---------------------------------------------------------------------------------------------------

// As the session itself, but for what depends on contents; a budget that limits nothing, but under which values are
// held as they are under one.
SessionOptions options_for_copy(SessionOptions options) {
  options.budget = Bytes{1} << 60;
  options.device = "cpu";
  options.budgets.clear();
  options.pack = false;
  options.disk = {};
  options.plans.clear();
  options.planning_time = std::chrono::milliseconds(0);
  return options;
}

// What stopped it; empty: nothing.
std::string run_without_memory(const std::shared_ptr<SessionState>& session, const std::function<void()>& train) {
  begin_fake_run();
  open_step(session);
  std::string stopped_by;
  try {
    train();
  } catch (const std::exception& error) {
    stopped_by = error.what();
    if (stopped_by.empty()) stopped_by = "it threw an error without a text";
  } catch (...) {
    stopped_by = "it threw something that is no std::exception";
  }
  close_step(*session);
  if (session->passes().ended() > 0) return stopped_by;
  throw SessionError(stopped_by.empty() ? "the function ran no backward" : stopped_by);
}

std::vector<std::uint64_t> fingerprints_of(const RecordedPass& pass) {
  std::vector<std::uint64_t> all;
  for (const ObservedMoment& moment : pass.seen.moments) {
    all.push_back(moment.op == no_operator ? 0 : pass.recipes->fingerprint_of(moment.op));
  }
  return all;
}

void tell_pass(ByteWriter& told, const RecordedPass& pass, const PassPlan& planned) {
  if (!planned.failure.empty()) throw SessionError("a trace could not be planned: " + planned.failure);
  told.number(planned.executable != nullptr);
  if (!planned.executable) {
    told.number(planned.result.smallest_feasible.value_or(-1));
    told.number(planned.result.floor);
    told.text(planned.floor_set_by);
    return;
  }
  ExecutablePlan executable = *planned.executable;
  executable.recipes = fingerprints_of(pass);
  told.number(pass.place_in_step);
  told.text(to_json(planned.result.plan));
  told.executable(executable);
}

std::string rehearsed_here(SessionState& of, Bytes budget, const std::function<void()>& train) {
  const auto session = std::make_shared<SessionState>(options_for_copy(of.options()));
  {
    const Arbiter lock;
    session->context().learn_from(of.context());
  }
  ByteWriter told;
  told.text(run_without_memory(session, train));
  const double began = thread_microseconds();
  const auto& passes = session->passes().known().all();
  told.number(passes.size());
  PlanOptions options;
  options.budget = budget;
  options.time_limit = std::chrono::duration<double>(of.options().planning_time) /
                       static_cast<double>(std::max<std::size_t>(1, passes.size()));
  for (const auto& pass : passes) tell_pass(told, *pass, plan_pass(*pass, false, options, {}));
  told.number((thread_microseconds() - began) * 1e-6);
  return told.take();
}

// ---- in the process itself -----------------------------------------------------------------------------------------

void hear_pass(ByteReader& told, Rehearsal& rehearsal, bool& all) {
  if (!told.number<bool>()) {
    all = false;
    const auto feasible = told.number<Bytes>(), floor = told.number<Bytes>();
    std::string set_by = told.text();
    SmallestBudget& most = rehearsal.smallest;
    if (feasible >= 0) most.feasible = std::max(feasible, most.feasible.value_or(0));
    if (floor > most.floor.value_or(-1)) {
      most.floor = floor;
      most.floor_set_by = std::move(set_by);
    }
    return;
  }
  AnnouncedPlan announced;
  announced.place_in_step = told.number<int>();
  announced.plan = parse_plan(told.text());
  announced.executable = std::make_shared<const ExecutablePlan>(told.executable());
  rehearsal.plans.push_back(std::move(announced));
}

Rehearsal heard(const std::string& text) {
  Rehearsal rehearsal;
  ByteReader told(text);
  rehearsal.stopped_by = told.text();
  bool all = true;
  for (auto left = told.number<std::size_t>(); left > 0; --left) hear_pass(told, rehearsal, all);
  rehearsal.planning_seconds = told.number<double>();
  if (!all) rehearsal.plans.clear();
  return rehearsal;
}

}  // namespace

Rehearsal rehearse(SessionState& session, const std::function<void()>& train, const MakeCopy& make_copy) {
  Bytes budget = 0;
  {
    const Arbiter lock;
    budget = session.budget_of_plans();
  }
  return heard(told_by_copy(
      rehearsing, [&] { return rehearsed_here(session, budget, train); }, make_copy));
}

}  // namespace reprise::internal
