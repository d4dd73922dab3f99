// The trainer among the guests of the soak.
#include <torch/torch.h>

#include <algorithm>

#include "torch/random/guests.h"
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
using at::Tensor;

constexpr std::int64_t width = 32;

// Rows that are drawn when they are asked for, as an augmentation does.
struct DrawnRows : torch::data::datasets::Dataset<DrawnRows> {
  torch::data::Example<> get(std::size_t index) override {
    return {torch::rand({width}), torch::full({1}, static_cast<double>(index % 7))};
  }
  std::optional<std::size_t> size() const override { return 4096; }
};

auto make_loader() {
  return torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      DrawnRows().map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions(128).workers(2));
}

struct Model : nn::Module {
  nn::Linear in{width, width}, out{width, 1};
  nn::BatchNorm1d norm{width};
  Tensor statistic = register_buffer("statistic", torch::zeros({width}));
  Model() {
    register_module("in", in);
    register_module("out", out);
    register_module("norm", norm);
  }

  // As many rounds as the batch is long, so that every shape is another trace. Without dropout, to be compared.
  Tensor forward(const Tensor& x, int rounds, double dropout) {
    Tensor h = norm(in(x)) + statistic;
    if (h.requires_grad())
      h.register_hook([this](const Tensor& gradient) {
        const at::NoGradGuard off;
        statistic.mul_(0.9).add_(gradient.mean(0), 1e-6);
        return gradient;
      });
    for (int i = 0; i < rounds; ++i) h = torch::dropout(torch::tanh(in(h)), dropout, true);
    return out(h);
  }
};

class Trainer {
 public:
  explicit Trainer(Bytes budget)
      : session_([&] {
          SessionOptions options;
          options.budget = budget;
          options.planning_time = std::chrono::milliseconds(100);
          options.name = "trainer";
          return options;
        }()) {}

  void round(std::uint64_t number) {
    if (!next_ || *next_ == loader_->end()) {
      next_.reset();
      loader_ = make_loader();
      next_.emplace(loader_->begin());
    }
    const torch::data::Example<> batch = **next_;
    ++*next_;
    const auto rows = 24 + static_cast<std::int64_t>(number * 31 % 101);  // shapes that do not come back soon
    const Tensor x = batch.data.slice(0, 0, rows), target = batch.target.slice(0, 0, rows);
    const int rounds = 4 + static_cast<int>(number % 3);
    // Every tenth step has no dropout and is compared with a plain one from the same state.
    number % 10 == 0 ? compare(x, target, rounds) : train(x, target, rounds);
  }

 private:
  void train(const Tensor& x, const Tensor& target, int rounds) {
    model_.zero_grad();
    const Tensor ones = torch::ones({x.size(0), 128}).requires_grad_(true);
    Tensor mask;
    {
      const Step step = session_.step();
      mask = torch::dropout(ones.detach(), 0.5, true);
      const Tensor masked = (ones * mask).sum();
      ((model_.forward(x, rounds, 0.2) - target).pow(2).mean() + masked).backward();
      optimizer_.step();
    }
    count_replays(session_);
    expect_gradient(ones, mask, "trainer");
  }

  void compare(const Tensor& x, const Tensor& target, int rounds) {
    const auto before = buffers();
    const auto results = [&](bool in_session) {
      model_.zero_grad();
      restore(before);
      std::optional<Step> step;
      if (in_session) step.emplace(session_.step());
      (model_.forward(x, rounds, 0) - target).pow(2).mean().backward();
      step.reset();
      return snapshots(gradients(model_));
    };
    const auto expected = results(false), actual = results(true);
    if (const auto why = difference(expected, actual); !why.empty())
      throw Error("[trainer] not as a plain step: " + why);
  }

  Tensors buffers() const {
    Tensors all;
    for (const Tensor& buffer : model_.buffers()) all.push_back(buffer.clone());
    return all;
  }
  void restore(const Tensors& contents) {
    auto all = model_.buffers();
    for (std::size_t i = 0; i < all.size(); ++i) all[i].copy_(contents[i]);
  }

  Model model_;
  torch::optim::SGD optimizer_{model_.parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9)};
  Session session_;
  decltype(make_loader()) loader_;
  std::optional<torch::data::Iterator<torch::data::Example<>>> next_;
};

}  // namespace

std::unique_ptr<Guest> trainer(Bytes budget) {
  const auto one = std::make_shared<Trainer>(budget);
  return std::make_unique<Guest>("trainer", [one](std::uint64_t number) { one->round(number); });
}

}  // namespace reprise::testing
