#include "reprise/torch/session.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <exception>
#include <string>

#include "torch/api/installed.h"
#include "torch/evict/writes.h"
#include "torch/hooks/steps.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/counted_device.h"
#include "torch/memory/memory.h"
#include "torch/memory/meter.h"
#include "torch/plans/plan_folder.h"
#include "torch/plans/planning_queue.h"
#include "torch/session/thread_state.h"

namespace reprise {
using namespace internal;

// A section by which `reprise run` sees that a program has Reprise linked in.
[[gnu::used, gnu::section("reprise_linked")]] constinit const char linked_into_this_program = 1;

// ---- step ----------------------------------------------------------------------------------------------------------

Step::Step(std::shared_ptr<SessionState> state) : state_(std::move(state)), exceptions_(std::uncaught_exceptions()) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
    exceptions_ = other.exceptions_;
  }
  return *this;
}
Step::~Step() {
  close();
}
void Step::close() noexcept {
  const auto state = std::move(state_);
  if (!state) return;
  close_step(*state);
  if (std::uncaught_exceptions() <= exceptions_) state->measure_shares();
}

Bytes fraction_of_memory(double share) {
  return fraction_of_memory(share, "/");
}

// ---- session -------------------------------------------------------------------------------------------------------

Session::Session(SessionOptions options) {
  need_installed();
  const auto devices = devices_of(options);
  const auto budgets = budgets_of(options);
  for (std::size_t i = 0; i < devices.size(); ++i) check_budget(*devices[i].device, budgets[i]);
  if (!options.disk.folder.empty() &&
      std::none_of(devices.begin(), devices.end(), [](const auto& one) { return one.device->is_cpu(); })) {
    throw BadOption("[session] option disk: values on " + devices.front().device->name() +
                    " cannot go to a disk. Only those of the CPU can, and it is no device of this session");
  }
  const bool has_share = std::any_of(budgets.begin(), budgets.end(), [](const Budget& one) { return one.is_share(); });
  if (has_share && options.evict_everything) {
    throw BadOption(
        "[session] option evict_everything is on: a budget that is a share of what a step needs cannot be "
        "measured then. Give an amount of bytes");
  }
  if (options.planning_time.count() < 0) {
    throw BadOption("[session] option planning_time is " + std::to_string(options.planning_time.count()) +
                    " ms: it must not be negative");
  }
  if (!(options.planning_share >= 0)) {
    throw BadOption("[session] option planning_share is " + std::to_string(options.planning_share) +
                    ": it must be a number that is not negative");
  }
  if (options.disk.bytes < 0) {
    throw BadOption("[session] option disk.bytes is " + std::to_string(options.disk.bytes) +
                    ": it must not be negative");
  }
  check_host(options);
  if (!options.plans.empty()) require_plan_folder(options.plans);
  meter::keep_heap();
  Planning::of_process().prepare();
  state_ = std::make_shared<SessionState>(std::move(options));
}
Session::~Session() {
  if (state_) state_->give_up_planning();
}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
  if (state_ && this != &other) state_->give_up_planning();
  state_ = std::move(other.state_);
  return *this;
}

Step Session::step() {
  if (const SessionState* const open = this_thread().step) {
    throw BadOption("[session] step: this thread has an open step already, of session '" + open->name() +
                    "'; close it first");
  }
  if (!enabled()) return Step(nullptr);
  state_->check_devices();
  open_step(state_);
  return Step(state_);
}

void Session::budget(const Budget& budget) {
  this->budget("", budget);
}
void Session::budget(const std::string& device, const Budget& budget) {
  const DeviceOrdinal ordinal = state_->device_for(device, budget);
  bool is_cpu = false;
  {
    const Arbiter lock;
    state_->budget(ordinal, budget);
    is_cpu = state_->context().devices()[ordinal].device->is_cpu();
  }
  if (is_cpu) meter::shrink(budget.bytes());
}
Bytes Session::budget() const {
  const Arbiter lock;
  return state_->budget();
}

void Session::enabled(bool on) {
  const Arbiter lock;
  state_->enabled(on);
}
bool Session::enabled() const {
  const Arbiter lock;
  return state_->enabled();
}

void Session::label_modules(const torch::nn::Module& model) {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& parameter : model.named_parameters()) named.emplace_back(parameter.key(), parameter.value());
  label_modules(named);
}
void Session::label_modules(const std::vector<std::pair<std::string, at::Tensor>>& named_parameters) {
  const Arbiter lock;
  for (const auto& [name, parameter] : named_parameters) {
    const std::size_t dot = name.rfind('.');
    state_->context().label(parameter, dot == std::string::npos ? std::string() : name.substr(0, dot));
  }
}

Summary Session::summary() const {
  return state_->summary();
}
void Session::wait_for_plan() {
  std::uint64_t last = 0;
  {
    const Arbiter lock;
    last = state_->last_planning_job();
  }
  Planning::of_process().wait(last);
}
std::optional<Trace> Session::trace() const {
  return state_->trace();
}
std::optional<Plan> Session::plan() const {
  return state_->plan();
}
void Session::follow(Plan plan) {
  state_->follow(std::move(plan));
}
void Session::touched(const at::Tensor& tensor) {
  if (!tensor.defined() || !libtorch::is_plain(tensor)) return;
  const writes::Written written{tensor};
  writes::lose_contents(written);  // it is too late to save them
  writes::take_over(written);
}

}  // namespace reprise
