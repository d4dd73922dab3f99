// Three steps of a small network within a budget.
#include <reprise/reprise.h>
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

int main() {
  using namespace reprise::literals;

  torch::nn::Sequential model(torch::nn::Linear(64, 256), torch::nn::ReLU(), torch::nn::Dropout(0.1),
                              torch::nn::Linear(256, 8));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01));

  reprise::Session session({.budget = 64_MiB});
  for (int i = 0; i < 3; ++i) {
    auto step = session.step();
    const torch::Tensor loss =
        torch::nn::functional::mse_loss(model->forward(torch::randn({32, 64})), torch::zeros({32, 8}));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }

  const reprise::Summary summary = session.summary();
  std::cout << summary << '\n';
  return summary.steps == 3 && summary.peak() > 0 && summary.peak() <= 64_MiB ? EXIT_SUCCESS : EXIT_FAILURE;
}
