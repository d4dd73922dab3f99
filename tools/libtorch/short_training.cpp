#include "libtorch/short_training.h"

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "reprise/torch/session.h"
#include "torch/fingerprint.h"
#include "torch/meter.h"

namespace reprise::tools {
using namespace internal;
namespace {

namespace nn = torch::nn;
using torch::Tensor;

struct Model {
  std::shared_ptr<nn::Module> module;
  std::function<Tensor()> loss;
};

Model convolutional() {
  nn::Sequential layers(nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)), nn::BatchNorm2d(16),
                        nn::ReLU(nn::ReLUOptions(true)), nn::MaxPool2d(2), nn::Dropout2d(0.2),
                        nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)), nn::BatchNorm2d(32),
                        nn::ReLU(nn::ReLUOptions(true)), nn::Dropout(0.2), nn::Flatten(), nn::Linear(32 * 8 * 8, 10));
  const Tensor pictures = torch::randn({32, 3, 16, 16});
  return {layers.ptr(), [layers, pictures]() mutable { return layers->forward(pictures).square().mean(); }};
}

Model recurrent() {
  nn::LSTM layers(nn::LSTMOptions(24, 48).num_layers(2).dropout(0.2).batch_first(true));
  const Tensor sequences = torch::randn({32, 24, 24});
  return {layers.ptr(), [layers, sequences]() mutable { return std::get<0>(layers->forward(sequences)).exp().mean(); }};
}

struct Outcome {
  Bytes peak = 0;
  std::vector<Fingerprint> fingerprints;
};

Outcome train(Model (*make)(), Session* session) {
  torch::manual_seed(1);
  const Model model = make();
  torch::optim::SGD optimizer(model.module->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  Outcome outcome;
  constexpr int steps = 6;
  for (int i = 0; i < steps; ++i) {
    meter::mark_peak();
    {
      std::optional<Step> step;
      if (session) step.emplace(session->step());
      optimizer.zero_grad();
      model.loss().backward();
      optimizer.step();
    }
    outcome.peak = std::max(outcome.peak, meter::peak());
    if (session && i == 2) session->wait_for_plan();
  }
  for (const auto& tensors : {model.module->parameters(), model.module->buffers()}) {
    for (const Tensor& tensor : tensors) {
      const Tensor bits = tensor.detach().contiguous();
      outcome.fingerprints.push_back(fingerprint(bits.const_data_ptr(), bits.nbytes()));
    }
  }
  return outcome;
}

ShortTraining compare(const char* name, Model (*make)()) {
  const Outcome plain = train(make, nullptr);
  SessionOptions options;
  options.budget = plain.peak * 7 / 10;
  options.planning_time = std::chrono::milliseconds(200);
  options.verify = Verify::always;
  Session session(options);
  const Outcome within = train(make, &session);
  return {name, within.fingerprints == plain.fingerprints, plain.peak, options.budget, within.peak};
}

}  // namespace

std::vector<ShortTraining> short_trainings() {
  return {compare("convolutional", convolutional), compare("recurrent", recurrent)};
}

}  // namespace reprise::tools
