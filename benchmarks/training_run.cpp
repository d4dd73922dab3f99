#include "training_run.h"

#include <algorithm>
#include <utility>

#include "reprise/trace/error.h"
#include "torch/libtorch/clock.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/meter.h"
#include "training_device.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

constexpr std::uint64_t model_seed = 0;

Model seeded_model(const std::string& name) {
  torch::manual_seed(model_seed);
  return make_model(name);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        std::vector<torch::Tensor> parameters) {
  if (name == "none") return nullptr;
  if (name == "sgd") {
    return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(1e-2).momentum(0.9));
  }
  if (name == "adam")
    return std::make_unique<torch::optim::Adam>(std::move(parameters), torch::optim::AdamOptions(1e-3));
  throw BadOption("[bench] there is no optimizer '" + name + "'");
}

// What the optimizer has for this parameter; nullptr: nothing, its gradient was never defined.
template <typename State>
State* state_of(torch::optim::Optimizer& optimizer, const torch::Tensor& parameter) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  return found == optimizer.state().end() ? nullptr : dynamic_cast<State*>(found->second.get());
}

}  // namespace

std::optional<std::string> Outcome::first_difference(const Outcome& other) const {
  const auto different = gradients.first_difference(other.gradients);
  return different ? different : buffers.first_difference(other.buffers);
}

void begin_process(int threads, bool denormals) {
  meter::keep_heap();
  at::set_num_threads(threads);
  at::globalContext().setFlushDenormal(!denormals);
}

Training::Training(const std::string& model, const std::string& optimizer)
    : model_(seeded_model(model)), optimizer_(make_optimizer(optimizer, model_.module->parameters())) {
  model_.module->train();
  buffers_at_start_ = Bits(buffers());
  if (has_optimizer()) prime_optimizer();
}

Training::~Training() = default;

StepResult Training::plain() {
  return run(model_.loss, nullptr);
}

StepResult Training::rerun(const Regions& regions) {
  return run([&] { return model_.region_loss(regions); }, nullptr);
}

StepResult Training::reprise(Session& session) {
  return run(model_.loss, &session);
}

StepResult Training::run(const std::function<torch::Tensor()>& loss_of, Session* session) {
  reset();
  StepResult result;
  Meter& meter = device_of_training().meter();
  result.level = meter.live();
  meter.mark_peak();
  const double wall = wall_microseconds(), thread = thread_microseconds();
  TrainingClock clock;
  {
    std::optional<Step> step;
    if (session != nullptr) step.emplace(session->step());
    const torch::Tensor loss = loss_of();
    loss.backward();
    if (optimizer_) optimizer_->step();
    loss_ = loss.item<float>();
  }
  result.seconds = clock.seconds();
  result.thread_seconds = 1e-6 * (thread_microseconds() - thread);
  result.wall_seconds = 1e-6 * (wall_microseconds() - wall);
  result.peak = meter.peak();
  // A session marks the peak for itself: then what is read here begins at the end of its step.
  if (session != nullptr) result.peak = std::max(result.peak, session->summary().peak_last_step());
  return result;
}

// A step with gradients of zero: the state appears, nothing is learnt, and no activation was ever there.
void Training::prime_optimizer() {
  for (torch::Tensor& parameter : model_.module->parameters()) {
    parameter.mutable_grad() = torch::zeros_like(parameter);
  }
  optimizer_->step();
  model_.module->zero_grad(/*set_to_none=*/true);
  advance();
}

void Training::reset() {
  model_.module->zero_grad(/*set_to_none=*/true);
  buffers_at_start_.restore(buffers());
  if (optimizer_) {
    trained_at_start_.restore(trained());
    for (const torch::Tensor& parameter : model_.module->parameters()) {
      if (auto* const state = state_of<torch::optim::AdamParamState>(*optimizer_, parameter)) {
        state->step(optimizer_steps_);
      }
    }
  }
  torch::manual_seed(seed_);
}

void Training::advance() {
  if (!optimizer_) return;
  buffers_at_start_ = Bits(buffers());
  trained_at_start_ = Bits(trained());
  ++optimizer_steps_;
}

Outcome Training::outcome() const {
  NamedTensors tensors;
  tensors.emplace_back("the loss", torch::full({1}, loss_));
  tensors.emplace_back("the generator", libtorch::default_generator(device_of_training().device()).get_state());
  for (const auto& parameter : model_.module->named_parameters()) {
    tensors.emplace_back("the gradient of " + parameter.key(), parameter.value().grad());
  }
  for (auto& tensor : trained()) tensors.push_back(std::move(tensor));
  return {Bits(tensors), Bits(buffers())};
}

NamedTensors Training::buffers() const {
  NamedTensors result;
  for (const auto& buffer : model_.module->named_buffers()) result.emplace_back(buffer.key(), buffer.value());
  return result;
}

NamedTensors Training::trained() const {
  NamedTensors result;
  if (!optimizer_) return result;
  for (const auto& parameter : model_.module->named_parameters()) {
    result.emplace_back(parameter.key(), parameter.value());
    if (auto* const adam = state_of<torch::optim::AdamParamState>(*optimizer_, parameter.value())) {
      result.emplace_back("exp_avg of " + parameter.key(), adam->exp_avg());
      result.emplace_back("exp_avg_sq of " + parameter.key(), adam->exp_avg_sq());
    }
    if (auto* const sgd = state_of<torch::optim::SGDParamState>(*optimizer_, parameter.value())) {
      result.emplace_back("momentum of " + parameter.key(), sgd->momentum_buffer());
    }
  }
  return result;
}

}  // namespace reprise::benchmarks
