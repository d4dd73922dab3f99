#include "reprise/torch/session.h"

#include <torch/nn/module.h>

#include <string>

#include "torch/backward.h"
#include "torch/forks.h"
#include "torch/memory.h"
#include "torch/meter.h"
#include "torch/online.h"
#include "torch/planning.h"
#include "torch/recorder.h"
#include "torch/session_state.h"
#include "torch/writes.h"

namespace reprise {
using namespace internal;
namespace {

void check_budget(Bytes budget) {
  if (budget < 0) throw BadOption("[session] option budget is " + std::to_string(budget) + ": it must not be negative");
  if (budget != no_limit && !meter::in_charge()) {
    throw BadOption("[session] option budget is " + std::to_string(budget) +
                    ", but another library has put its own CPU allocator in front of Reprise's meter: bytes can be "
                    "neither counted nor limited. Only sessions without a budget work beside it");
  }
}

void death_of(meter::Header& header) {
  const Arbiter lock;
  header.tag = {};
}

// Before main, so that no tensor is missed and every saved tensor is seen; and so that at a fork our locks are taken
// after those of libraries that register their handlers later (fork.h).
const bool installed = [] {
  install_engine();
  meter::callbacks(make_room, death_of);
  install_fork_handlers();
  return true;
}();

}  // namespace

// ---- step ----------------------------------------------------------------------------------------------------------

Step::Step(std::shared_ptr<SessionState> state) : state_(std::move(state)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}
Step::~Step() {
  close();
}
void Step::close() noexcept {
  if (const auto state = std::move(state_)) state->close_step();
}

Bytes fraction_of_memory(double share) {
  return fraction_of_memory(share, "/");
}

// ---- session -------------------------------------------------------------------------------------------------------

Session::Session(SessionOptions options) {
  check_budget(options.budget);
  if (options.planning_time.count() < 0) {
    throw BadOption("[session] option planning_time is " + std::to_string(options.planning_time.count()) +
                    " ms: it must not be negative");
  }
  meter::keep_heap();
  prepare_planning();
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
    throw BadOption("[session] step: this thread has an open step already, of session '" + open->options.name +
                    "'; close it first");
  }
  if (!enabled()) return Step(nullptr);
  check_budget(budget());
  state_->open_step();
  return Step(state_);
}

void Session::budget(Bytes budget) {
  check_budget(budget);
  const Arbiter lock;
  state_->options.budget = budget;
  state_->plan_for(budget);
}
Bytes Session::budget() const {
  const Arbiter lock;
  return state_->options.budget;
}

void Session::enabled(bool on) {
  const Arbiter lock;
  state_->enabled = on;
}
bool Session::enabled() const {
  const Arbiter lock;
  return state_->enabled;
}

void Session::name(const torch::nn::Module& model) {
  const Arbiter lock;
  for (const auto& parameter : model.named_parameters()) {
    const std::size_t dot = parameter.key().rfind('.');
    state_->name(parameter.value(), dot == std::string::npos ? std::string() : parameter.key().substr(0, dot));
  }
}

Summary Session::summary() const {
  return state_->summary();
}
void Session::wait_for_plan() {
  state_->wait_for_plans();
}
std::optional<Trace> Session::trace() const {
  return state_->trace();
}
std::optional<Plan> Session::plan() const {
  return state_->plan();
}
void Session::use(Plan plan) {
  state_->use(std::move(plan));
}

void Session::touched(const at::Tensor& tensor) {
  if (!tensor.defined() || !libtorch::is_plain(tensor)) return;
  const writes::Written written{tensor};
  writes::lose_contents(written);  // it is too late to save them
  writes::take_over(written);
}

}  // namespace reprise
