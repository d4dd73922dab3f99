// Accumulates gradients over micro-batches, inside a byte budget.
//
//   accumulation [SHARE OF THE PLAIN PEAK]
//
// Micro-batches and a budget go together: the ones make what a backward pass needs smaller, the other holds it below a
// number of bytes. Every micro-batch is a step of the session; the optimizer works in every fourth of them.
#include <reprise/reprise.h>
#include <torch/torch.h>

#include "compare.h"

namespace {

constexpr int rows = 512, width = 128, layers = 8, micro_batches = 4, updates = 3;

// x + what a small network makes of it.
struct BlockImpl : torch::nn::Module {
  torch::nn::Sequential inside;

  BlockImpl()
      : inside(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})), torch::nn::Linear(width, 2 * width),
               torch::nn::GELU(), torch::nn::Dropout(0.1), torch::nn::Linear(2 * width, width)) {
    register_module("inside", inside);
  }
  torch::Tensor forward(const torch::Tensor& x) { return x + inside->forward(x); }
};
TORCH_MODULE(Block);

Outcome train(reprise::Session& session) {
  torch::manual_seed(1);
  torch::nn::Sequential model;
  for (int i = 0; i < layers; ++i) model->push_back(Block());
  model->push_back(torch::nn::Linear(width, 1));
  const torch::Tensor direction = torch::randn({width, 1}) / 8;  // what is to be learned
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));

  Outcome outcome;
  for (int i = 0; i < updates * micro_batches; ++i) {
    const torch::Tensor x = torch::randn({rows, width}), y = torch::sin(torch::mm(x, direction));
    auto step = session.step();  // everything below runs inside the budget
    const torch::Tensor loss = torch::nn::functional::mse_loss(model->forward(x), y) / micro_batches;
    loss.backward();  // adds to the gradients of the micro-batches before
    if ((i + 1) % micro_batches == 0) {
      torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
      optimizer.step();
      optimizer.zero_grad();
    }
    outcome.losses.push_back(loss.item<float>());
  }
  outcome.add(*model);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  return compare(train, share_of_peak(argc, argv, 0.5));
}
