// Trains a generator against a discriminator inside a byte budget.
//
//   gan [SHARE OF THE PLAIN PEAK]
//
// Two models and two optimizers take turns in one step, with three backward passes. One session covers all of it; each
// pass has a trace and a plan of its own.
#include <reprise/reprise.h>
#include <torch/torch.h>

#include <cmath>

#include "compare.h"

namespace {

constexpr int batch_size = 1024, noise_size = 16, width = 128;

// From `in` columns to `out`, through layers of `width`.
torch::nn::Sequential network(int in, int out) {
  torch::nn::Sequential result(torch::nn::Linear(in, width));
  for (int i = 0; i < 4; ++i) {
    result->push_back(torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)));
    result->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    result->push_back(torch::nn::Linear(width, i < 3 ? width : out));
  }
  return result;
}

// Points of the plane, in eight heaps around a circle.
torch::Tensor real_points() {
  const torch::Tensor angle = torch::randint(8, {batch_size}) * (2 * M_PI / 8);
  return torch::stack({angle.cos(), angle.sin()}, 1) + 0.05 * torch::randn({batch_size, 2});
}

// How far the discriminator is from calling all of these real, or fake.
torch::Tensor distance(const torch::Tensor& scores, bool real) {
  return torch::nn::functional::binary_cross_entropy_with_logits(
      scores, real ? torch::ones_like(scores) : torch::zeros_like(scores));
}

Outcome train(reprise::Session& session) {
  torch::manual_seed(1);
  auto generator = network(noise_size, 2), discriminator = network(2, 1);
  const auto options = torch::optim::AdamOptions(1e-3).betas({0.5, 0.999});
  torch::optim::Adam generator_optimizer(generator->parameters(), options);
  torch::optim::Adam discriminator_optimizer(discriminator->parameters(), options);

  Outcome outcome;
  for (int i = 0; i < 12; ++i) {
    auto step = session.step();  // everything below runs inside the budget
    const torch::Tensor fake = generator->forward(torch::randn({batch_size, noise_size}));

    discriminator_optimizer.zero_grad();
    const torch::Tensor real_loss = distance(discriminator->forward(real_points()), true);
    real_loss.backward();
    const torch::Tensor fake_loss = distance(discriminator->forward(fake.detach()), false);
    fake_loss.backward();
    discriminator_optimizer.step();

    generator_optimizer.zero_grad();
    const torch::Tensor generator_loss = distance(discriminator->forward(fake), true);
    generator_loss.backward();
    generator_optimizer.step();

    for (const torch::Tensor& loss : {real_loss, fake_loss, generator_loss}) {
      outcome.losses.push_back(loss.item<float>());
    }
  }
  outcome.add(*generator);
  outcome.add(*discriminator);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  return compare(train, share_of_peak(argc, argv, 0.5));
}
