#include "training_changing.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "reprise/trace/error.h"

namespace reprise::benchmarks {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;
using Random = std::mt19937_64;

// The same for every step with the same seed.
Random random_of_step() {
  return Random(at::detail::getDefaultCPUGenerator().current_seed());
}

// A model out of a net that draws what it does.
template <typename Net>
Model changing(std::shared_ptr<Net> net) {
  Model model;
  model.changing = true;
  model.module = net;
  model.loss = [net] {
    Random random = random_of_step();
    return net->forward(random);
  };
  model.region_loss = [](const Regions&) -> Tensor {
    throw BadOption("[bench] a model whose steps differ has no blocks for --region");
  };
  return model;
}

// ---- stochastic depth: residual blocks that are left out
// -------------------------------------------------------------

struct StochasticDepth : nn::Module {
  static constexpr std::int64_t width = 256, rows = 512, depth = 24;
  StochasticDepth() {
    for (std::int64_t i = 0; i < depth; ++i) {
      const std::string number = std::to_string(i);
      norms.push_back(register_module("n" + number, nn::LayerNorm(nn::LayerNormOptions({width}))));
      ins.push_back(register_module("i" + number, nn::Linear(width, 2 * width)));
      outs.push_back(register_module("o" + number, nn::Linear(2 * width, width)));
    }
    x = torch::randn({rows, width});
  }
  Tensor forward(Random& random) {
    Tensor h = x;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      const double left_out = 0.5 * static_cast<double>(i + 1) / static_cast<double>(depth);
      if (std::bernoulli_distribution(left_out)(random)) continue;
      h = h + torch::dropout(outs[i](torch::gelu(ins[i](norms[i](h)))), 0.1, /*train=*/true);
    }
    return h.pow(2).mean();
  }
  std::vector<nn::LayerNorm> norms;
  std::vector<nn::Linear> ins, outs;
  Tensor x;
};

// ---- lengths from a long-tailed distribution: a transformer
// ----------------------------------------------------------

struct Lengths : nn::Module {
  static constexpr std::int64_t width = 128, heads = 4, batch = 4, longest = 384;
  Lengths() {
    const auto layer = nn::TransformerEncoderLayer(
        nn::TransformerEncoderLayerOptions(width, heads).dim_feedforward(4 * width).dropout(0.1));
    encoder = register_module("encoder", nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, 4)));
    x = torch::randn({longest, batch, width});
  }
  Tensor forward(Random& random) {
    const double drawn = std::lognormal_distribution<double>(std::log(80.0), 0.7)(random);
    const std::int64_t length = std::clamp(static_cast<std::int64_t>(drawn), std::int64_t{8}, longest);
    return encoder(x.slice(0, 0, length)).pow(2).mean();
  }
  nn::TransformerEncoder encoder{nullptr};
  Tensor x;
};

// ---- scheduled sampling: a decoder that reads its own words now and then
// ---------------------------------------------

struct ScheduledSampling : nn::Module {
  static constexpr std::int64_t words = 512, width = 192, batch = 96, length = 48;
  ScheduledSampling() {
    embedding = register_module("e", nn::Embedding(words, width));
    cell = register_module("c", nn::LSTMCell(width, width));
    head = register_module("h", nn::Linear(width, words));
    targets = torch::randint(words, {length, batch});
  }
  Tensor forward(Random& random) {
    Tensor h = torch::zeros({batch, width}), c = h, word = targets[0];
    std::vector<Tensor> losses;
    for (std::int64_t t = 1; t < length; ++t) {
      std::tie(h, c) = cell(embedding(word), std::make_tuple(h, c));
      const Tensor scores = head(torch::dropout(h, 0.1, /*train=*/true));
      losses.push_back(F::cross_entropy(scores, targets[t]));
      word = std::bernoulli_distribution(0.3)(random) ? scores.detach().argmax(-1) : targets[t];
    }
    return torch::stack(losses).mean();
  }
  nn::Embedding embedding{nullptr};
  nn::LSTMCell cell{nullptr};
  nn::Linear head{nullptr};
  Tensor targets;
};

// ---- tree-LSTM: a random binary tree in every step
// --------------------------------------------------------------------

struct TreeLstm : nn::Module {
  static constexpr std::int64_t width = 192, batch = 128;
  TreeLstm() {
    leaf = register_module("l", nn::Linear(width, 3 * width));
    both = register_module("b", nn::Linear(2 * width, 5 * width));
    x = torch::randn({64, batch, width});
  }
  struct Node {
    Tensor h, c;
  };
  // Over the leaves from `first` to before `last`.
  Node over(std::int64_t first, std::int64_t last, Random& random) {
    if (last - first == 1) {
      const std::vector<Tensor> parts = leaf(x[first]).chunk(3, -1);
      const Tensor c = torch::sigmoid(parts[0]) * torch::tanh(parts[1]);
      return {torch::sigmoid(parts[2]) * torch::tanh(c), c};
    }
    const std::int64_t middle = std::uniform_int_distribution<std::int64_t>(first + 1, last - 1)(random);
    const Node left = over(first, middle, random), right = over(middle, last, random);
    const std::vector<Tensor> parts = both(torch::cat({left.h, right.h}, -1)).chunk(5, -1);
    const Tensor c = torch::sigmoid(parts[0]) * torch::tanh(parts[1]) + torch::sigmoid(parts[2]) * left.c +
                     torch::sigmoid(parts[3]) * right.c;
    return {torch::sigmoid(parts[4]) * torch::tanh(c), c};
  }
  Tensor forward(Random& random) {
    const std::int64_t leaves = std::uniform_int_distribution<std::int64_t>(24, 48)(random);
    return over(0, leaves, random).h.pow(2).mean();
  }
  nn::Linear leaf{nullptr}, both{nullptr};
  Tensor x;
};

}  // namespace

const std::vector<std::pair<std::string, std::function<Model()>>>& changing_models() {
  static const std::vector<std::pair<std::string, std::function<Model()>>> all{
      {"stochastic-depth", [] { return changing(std::make_shared<StochasticDepth>()); }},
      {"lengths", [] { return changing(std::make_shared<Lengths>()); }},
      {"scheduled-sampling", [] { return changing(std::make_shared<ScheduledSampling>()); }},
      {"tree-lstm", [] { return changing(std::make_shared<TreeLstm>()); }},
  };
  return all;
}

}  // namespace reprise::benchmarks
