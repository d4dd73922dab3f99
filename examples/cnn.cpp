// Trains a convolutional network with BatchNorm inside a byte budget.
//
//   cnn [SHARE OF THE PLAIN PEAK]
//
// What is evicted is recomputed by running single operators again, not the model: the running statistics of BatchNorm
// are updated once in each step, and are the same as without a budget.
#include <reprise/reprise.h>
#include <torch/torch.h>

#include "compare.h"

namespace {

constexpr int classes = 10, batch_size = 32, side = 32;

struct NetworkImpl : torch::nn::Module {
  torch::nn::Sequential body;
  torch::nn::Linear head = nullptr;

  NetworkImpl() {
    const int width = 16;
    add_block(3, width, 1);
    for (int i = 0; i < 3; ++i) add_block(width, width, 1);
    add_block(width, 2 * width, 2);
    for (int i = 0; i < 3; ++i) add_block(2 * width, 2 * width, 1);
    register_module("body", body);
    head = register_module("head", torch::nn::Linear(2 * width, classes));
  }

  void add_block(int in, int out, int stride) {
    body->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)));
    body->push_back(torch::nn::BatchNorm2d(out));
    body->push_back(torch::nn::ReLU());
  }

  torch::Tensor forward(const torch::Tensor& images) { return head(body->forward(images).mean({2, 3})); }
};
TORCH_MODULE(Network);

// Images of a class are one pattern under noise.
struct Batch {
  torch::Tensor images, labels;

  explicit Batch(const torch::Tensor& patterns) {
    labels = torch::randint(classes, {batch_size});
    images = patterns.index_select(0, labels) + 0.5 * torch::randn({batch_size, 3, side, side});
  }
};

Outcome train(reprise::Session& session) {
  torch::manual_seed(1);
  const torch::Tensor patterns = torch::randn({classes, 3, side, side});
  Network model;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4));

  Outcome outcome;
  for (int i = 0; i < 8; ++i) {
    const Batch batch(patterns);
    auto step = session.step();  // everything below runs inside the budget
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(batch.images), batch.labels);
    optimizer.zero_grad();
    loss.backward();  // what was evicted is replayed here
    optimizer.step();
    outcome.losses.push_back(loss.item<float>());
  }
  outcome.add(*model);  // parameters, and the statistics of BatchNorm
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  return compare(train, share_of_peak(argc, argv, 0.5));
}
