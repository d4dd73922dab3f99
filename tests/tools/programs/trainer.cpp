// A program that knows nothing of Reprise: trains a small network, prints every loss with all its bits, and exits with
// the code it was given.
//
//   trainer CODE [thread] [unreached]
//
// thread: it trains on another thread. unreached: a part of the graph is never reached by backward.
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

namespace {

constexpr int steps = 8;

void train(bool unreached) {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(64, 512), torch::nn::GELU(), torch::nn::Dropout(0.1),
                              torch::nn::Linear(512, 512), torch::nn::GELU(), torch::nn::Dropout(0.1),
                              torch::nn::Linear(512, 512), torch::nn::Tanh(), torch::nn::Linear(512, 1));
  torch::optim::Adam optimizer(model->parameters());
  for (int i = 0; i < steps; ++i) {
    const torch::Tensor y = model->forward(torch::randn({4096, 64}));
    const torch::Tensor beside = unreached ? y.sigmoid() : torch::Tensor();
    const torch::Tensor loss = y.pow(2).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::cout << std::hexfloat << loss.item<float>() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  bool thread = false, unreached = false;
  for (int i = 2; i < argc; ++i) {
    thread |= argv[i] == std::string("thread");
    unreached |= argv[i] == std::string("unreached");
  }
  if (thread) {
    std::thread(train, unreached).join();
  } else {
    train(unreached);
  }
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
