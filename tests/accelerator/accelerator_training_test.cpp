// Real models on the simulated accelerator.
#include "accelerator/accelerator_fixture.h"

namespace reprise::testing::accelerator {
namespace {

namespace nn = torch::nn;
using at::Tensor;

struct Mlp : nn::Module {
  nn::Sequential layers;
  explicit Mlp(double dropout)
      : layers(register_module("layers", nn::Sequential(nn::Linear(32, 64), nn::GELU(), nn::Dropout(dropout),
                                                        nn::Linear(64, 64), nn::Tanh(), nn::Linear(64, 10)))) {}
  Tensor loss(const Tensor& x, const Tensor& y) { return nn::functional::cross_entropy(layers->forward(x), y); }
  static std::pair<Tensor, Tensor> batch() { return {torch::randn({48, 32}), torch::randint(10, {48})}; }
};

struct ConvolutionNet : nn::Module {
  nn::Sequential layers;
  explicit ConvolutionNet(double dropout)
      : layers(register_module(
            "layers", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)), nn::BatchNorm2d(8), nn::ReLU(),
                                     nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(8, 16, 3).padding(1).stride(2)),
                                     nn::GroupNorm(4, 16), nn::SiLU(), nn::AvgPool2d(2), nn::Flatten(),
                                     nn::Dropout(dropout), nn::Linear(16 * 2 * 2, 10)))) {}
  Tensor loss(const Tensor& x, const Tensor& y) { return nn::functional::cross_entropy(layers->forward(x), y); }
  static std::pair<Tensor, Tensor> batch() { return {torch::randn({8, 3, 16, 16}), torch::randint(10, {8})}; }
};

struct Gpt : nn::Module {
  nn::Embedding words = register_module("words", nn::Embedding(40, 32));
  nn::LayerNorm before = register_module("before", nn::LayerNorm(nn::LayerNormOptions({32})));
  nn::Linear in = register_module("in", nn::Linear(32, 96)), out = register_module("out", nn::Linear(32, 32));
  nn::LayerNorm between = register_module("between", nn::LayerNorm(nn::LayerNormOptions({32})));
  nn::Linear up = register_module("up", nn::Linear(32, 64)), down = register_module("down", nn::Linear(64, 32));
  nn::Linear head = register_module("head", nn::Linear(32, 40));
  double dropout;
  explicit Gpt(double share) : dropout(share) {}

  Tensor loss(const Tensor& x, const Tensor& y) {
    Tensor h = words(x);
    const auto rows = h.size(0), length = h.size(1);
    const auto parts = in(before(h)).view({rows, length, 3, 4, 8}).permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor seen = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, dropout, true);
    h = h + at::dropout(out(seen.transpose(1, 2).reshape({rows, length, 32})), dropout, true);
    h = h + down(at::gelu(up(between(h))));
    return nn::functional::cross_entropy(head(h).view({-1, 40}), y.view(-1));
  }
  static std::pair<Tensor, Tensor> batch() { return {torch::randint(40, {4, 12}), torch::randint(40, {4, 12})}; }
};

// The losses of some steps and the sums of the parameters after them, always of the same numbers.
template <class Model>
std::vector<float> train(c10::Device device, double dropout, int steps) {
  torch::manual_seed(1);
  Model model(dropout);
  auto [x, y] = Model::batch();
  model.to(device);
  x = x.to(device);
  y = y.to(device);
  torch::optim::Adam adam(model.parameters(), torch::optim::AdamOptions(3e-3));
  std::vector<Tensor> results;
  for (int i = 0; i < steps; ++i) {
    const Tensor loss = model.loss(x, y);
    adam.zero_grad();
    loss.backward();
    adam.step();
    results.push_back(loss.detach());
  }
  for (const Tensor& parameter : model.parameters()) results.push_back(parameter.detach().sum());
  std::vector<float> read;
  for (const Tensor& result : results) read.push_back(result.template item<float>());
  return read;
}

class AcceleratorTraining : public Accelerator {
 protected:
  static constexpr int steps = 6;

  template <class Model>
  static void expect_training(bool same_bits_as_cpu) {
    const auto on_cpu = train<Model>(at::kCPU, 0, steps), on_device = train<Model>(device_, 0, steps);
    if (same_bits_as_cpu) EXPECT_EQ(on_device, on_cpu);
    for (std::size_t i = 0; i < steps; ++i) EXPECT_NEAR(on_device[i], on_cpu[i], 1e-3) << "loss " << i;
    EXPECT_LT(on_device[steps - 1], on_device[0]);

    const auto with_dropout = train<Model>(device_, 0.2, steps);
    EXPECT_NE(with_dropout, on_device);
    slow_down(std::chrono::microseconds(50));
    EXPECT_EQ(train<Model>(device_, 0.2, steps), with_dropout) << "the device is behind, and that makes no difference";
    slow_down({});
  }
};

TEST_F(AcceleratorTraining, OfAnMlpGivesTheBitsOfTheCpu) {
  expect_training<Mlp>(true);
}
TEST_F(AcceleratorTraining, OfAConvolutionNetGoesAsOnTheCpu) {
  expect_training<ConvolutionNet>(false);
}
TEST_F(AcceleratorTraining, OfAGptGoesAsOnTheCpu) {
  expect_training<Gpt>(false);
}

TEST_F(AcceleratorTraining, LetsTheHostWaitOnlyForWhatItReads) {
  train<Gpt>(device_, 0.2, 2);
  const Counts before = counts();
  train<Gpt>(device_, 0.2, 2);
  const Counts after = counts();
  for (const auto& [name, waits] : after.waits_by_name) {
    const auto found = before.waits_by_name.find(name);
    const auto more = waits - (found == before.waits_by_name.end() ? 0 : found->second);
    if (name != "_copy_from" && name != "_local_scalar_dense") EXPECT_EQ(more, 0) << name;
  }
  EXPECT_GT(after.kernels, before.kernels + 100);
}

TEST_F(AcceleratorTraining, GivesEverythingBack) {
  train<ConvolutionNet>(device_, 0.2, 2);
  EXPECT_EQ(memory().live, 0);
  EXPECT_GT(memory().live_peak, 0);
}

}  // namespace
}  // namespace reprise::testing::accelerator
