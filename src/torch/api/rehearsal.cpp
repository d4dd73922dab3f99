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
  for (const ProfiledMoment& moment : pass.profile.moments) {
    all.push_back(moment.op == no_operator ? 0 : pass.recipes->fingerprint_of(moment.op));
  }
  return all;
}

void write_pass(ByteWriter& writer, const RecordedPass& pass, const PassPlan& planned) {
  if (!planned.failure.empty()) throw SessionError("a trace could not be planned: " + planned.failure);
  writer.number(planned.executable != nullptr);
  if (!planned.executable) {
    writer.number(planned.result.smallest_feasible.value_or(-1));
    writer.number(planned.result.floor);
    writer.text(planned.floor_set_by);
    return;
  }
  ExecutablePlan executable = *planned.executable;
  executable.recipes = fingerprints_of(pass);
  writer.number(pass.place_in_step);
  writer.text(to_json(planned.result.plan));
  writer.executable(executable);
}

std::string write_rehearsal(SessionState& of, Bytes budget, const std::function<void()>& train) {
  const auto session = std::make_shared<SessionState>(options_for_copy(of.options()));
  {
    const Arbiter lock;
    session->context().learn_from(of.context());
  }
  ByteWriter writer;
  writer.text(run_without_memory(session, train));
  const double began = thread_microseconds();
  const auto& passes = session->passes().known().all();
  writer.number(passes.size());
  PlanOptions options;
  options.budget = budget;
  options.time_limit = std::chrono::duration<double>(of.options().planning_time) /
                       static_cast<double>(std::max<std::size_t>(1, passes.size()));
  for (const auto& pass : passes) write_pass(writer, *pass, plan_pass(*pass, false, options, {}));
  writer.number((thread_microseconds() - began) * 1e-6);
  return writer.take();
}

// ---- in the process itself -----------------------------------------------------------------------------------------

void read_pass(ByteReader& reader, Rehearsal& rehearsal, bool& all) {
  if (!reader.number<bool>()) {
    all = false;
    const auto feasible = reader.number<Bytes>(), floor = reader.number<Bytes>();
    std::string set_by = reader.text();
    SmallestBudget& most = rehearsal.smallest;
    if (feasible >= 0) most.feasible = std::max(feasible, most.feasible.value_or(0));
    if (floor > most.floor.value_or(-1)) {
      most.floor = floor;
      most.floor_set_by = std::move(set_by);
    }
    return;
  }
  AnnouncedPlan announced;
  announced.place_in_step = reader.number<int>();
  announced.plan = parse_plan(reader.text());
  announced.executable = std::make_shared<const ExecutablePlan>(reader.executable());
  rehearsal.plans.push_back(std::move(announced));
}

Rehearsal read_rehearsal(const std::string& text) {
  Rehearsal rehearsal;
  ByteReader reader(text);
  rehearsal.stopped_by = reader.text();
  bool all = true;
  for (auto left = reader.number<std::size_t>(); left > 0; --left) read_pass(reader, rehearsal, all);
  rehearsal.planning_seconds = reader.number<double>();
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
  return read_rehearsal(report_of_copy(
      rehearsing, [&] { return write_rehearsal(session, budget, train); }, make_copy));
}

}  // namespace reprise::internal
