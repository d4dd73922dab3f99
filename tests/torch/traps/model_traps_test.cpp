// Whole models, as people train them: everything at once.
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using at::Tensor;

// ---- convolutional ----

nn::Sequential convolutions(std::int64_t from, std::int64_t to) {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(from, to, 3).padding(1)), nn::BatchNorm2d(to), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(to, to, 3).padding(1)), nn::BatchNorm2d(to), nn::ReLU());
}

struct SmallUNet : nn::Module {
  SmallUNet() {
    std::int64_t channels = 3;
    for (int k = 0; k < 2; ++k) {
      down.push_back(register_module("down" + std::to_string(k), convolutions(channels, 8 << k)));
      channels = 8 << k;
    }
    middle = register_module("middle", convolutions(channels, 32));
    for (int k = 1; k >= 0; --k) {
      const std::int64_t from = 8 << (k + 1), to = 8 << k;
      lift.push_back(register_module("lift" + std::to_string(k),
                                     nn::ConvTranspose2d(nn::ConvTranspose2dOptions(from, to, 2).stride(2))));
      up.push_back(register_module("up" + std::to_string(k), convolutions(2 * to, to)));
    }
    head = register_module("head", nn::Conv2d(nn::Conv2dOptions(8, 4, 1)));
  }
  Tensor forward(Tensor x) {
    Tensors skips;
    for (auto& block : down) {
      skips.push_back(block->forward(x));
      x = F::max_pool2d(skips.back(), F::MaxPool2dFuncOptions(2));
    }
    x = middle->forward(x);
    for (std::size_t k = 0; k < up.size(); ++k) {
      x = up[k]->forward(torch::cat({skips[skips.size() - 1 - k], lift[k](x)}, 1));
    }
    return head(x);
  }
  std::vector<nn::Sequential> down, up;
  std::vector<nn::ConvTranspose2d> lift;
  nn::Sequential middle{nullptr};
  nn::Conv2d head{nullptr};
};

const Traps convolutional({
    {"ConvolutionalNetworkWithBatchNorm",
     [] {
       nn::Sequential body = convolutions(3, 8), more = convolutions(8, 16);
       nn::Sequential head(nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Dropout(0.2), nn::Linear(16, 5));
       const auto x = torch::randn({8, 3, 16, 16});
       const auto classes = torch::randint(5, {8});
       return [=]() mutable {
         const Tensor middle = F::max_pool2d(body->forward(x), F::MaxPool2dFuncOptions(2));
         const Tensor loss = F::cross_entropy(head->forward(more->forward(middle)), classes);
         loss.backward();
         return gradients(*body, gradients(*more, gradients(*head, {loss.detach()})));
       };
     },
     2},
    {"UNet",
     [] {
       auto model = std::make_shared<SmallUNet>();
       const auto x = torch::randn({4, 3, 16, 16});
       const auto classes = torch::randint(4, {4, 16, 16});
       return [=]() mutable {
         const Tensor loss = F::cross_entropy(model->forward(x), classes);
         loss.backward();
         return gradients(*model, {loss.detach()});
       };
     }},
});

// ---- language models ----

struct SmallGpt : nn::Module {
  static constexpr std::int64_t width = 32, heads = 4, words = 50, length = 24;
  struct Block : nn::Module {
    Block()
        : one(register_module("one", nn::LayerNorm(nn::LayerNormOptions({width})))),
          two(register_module("two", nn::LayerNorm(nn::LayerNormOptions({width})))),
          qkv(register_module("qkv", nn::Linear(width, 3 * width))),
          out(register_module("out", nn::Linear(width, width))),
          wide(register_module("wide", nn::Linear(width, 4 * width))),
          narrow(register_module("narrow", nn::Linear(4 * width, width))) {}
    nn::LayerNorm one, two;
    nn::Linear qkv, out, wide, narrow;
  };

  explicit SmallGpt(bool fused_) : fused(fused_) {
    word = register_module("word", nn::Embedding(words, width));
    place = register_module("place", nn::Embedding(length, width));
    for (int k = 0; k < 3; ++k)
      blocks.push_back(register_module("block" + std::to_string(k), std::make_shared<Block>()));
    last = register_module("last", nn::LayerNorm(nn::LayerNormOptions({width})));
    head = register_module("head", nn::Linear(nn::LinearOptions(width, words).bias(false)));
  }
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) const {
    if (fused) return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
    Tensor scores = torch::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(width / heads));
    scores = scores.masked_fill(torch::ones({length, length}, torch::kBool).triu(1), -1e9);
    return torch::matmul(torch::dropout(scores.softmax(-1), 0.1, true), v);
  }
  Tensor forward(const Tensor& tokens) {
    Tensor x = torch::dropout(word(tokens) + place(torch::arange(length)), 0.1, true);
    for (auto& block : blocks) {
      const auto parts = block->qkv(block->one(x)).view({-1, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
      const Tensor y = attention(parts[0], parts[1], parts[2]).transpose(1, 2).reshape({-1, length, width});
      x = x + torch::dropout(block->out(y), 0.1, true);
      x = x + torch::dropout(block->narrow(torch::gelu(block->wide(block->two(x)))), 0.1, true);
    }
    return head(last(x));
  }
  bool fused;
  nn::Embedding word{nullptr}, place{nullptr};
  std::vector<std::shared_ptr<Block>> blocks;
  nn::LayerNorm last{nullptr};
  nn::Linear head{nullptr};
};

Work language_model(bool fused) {
  auto model = std::make_shared<SmallGpt>(fused);
  const auto tokens = torch::randint(SmallGpt::words, {4, SmallGpt::length + 1});
  return [=]() mutable {
    const Tensor scores = model->forward(tokens.slice(1, 0, SmallGpt::length));
    const Tensor loss = F::cross_entropy(scores.view({-1, SmallGpt::words}), tokens.slice(1, 1).reshape({-1}));
    loss.backward();
    return gradients(*model, {loss.detach()});
  };
}

const Traps language({
    {"GptWithAttentionWrittenOut", [] { return language_model(false); }, 2},
    {"GptWithFusedAttention", [] { return language_model(true); }, 2},
});

// ---- plain ----

const Traps plain({
    {"PerceptronOfManyLayers",
     [] {
       nn::Sequential model(nn::Linear(16, 64));
       for (int k = 0; k < 6; ++k) {
         model->push_back(nn::Tanh());
         model->push_back(nn::Dropout(0.1));
         model->push_back(nn::Linear(64, 64));
       }
       const auto x = torch::randn({64, 16});
       return [=]() mutable {
         const Tensor loss = model->forward(x).pow(2).mean();
         loss.backward();
         return gradients(*model, {loss.detach()});
       };
     },
     2},
});

}  // namespace
}  // namespace reprise::testing
