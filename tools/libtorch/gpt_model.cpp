#include "libtorch/gpt_model.h"

#include <cmath>
#include <limits>

#include "libtorch/rerun.h"

namespace reprise::tools {

using torch::Tensor;
using torch::indexing::Slice;
namespace nn = torch::nn;

BlockImpl::BlockImpl(const GptOptions& options)
    : heads_(options.heads),
      norm1_(nn::LayerNormOptions({options.width})),
      norm2_(nn::LayerNormOptions({options.width})),
      qkv_(options.width, 3 * options.width),
      projection_(options.width, options.width),
      up_(options.width, 4 * options.width),
      down_(4 * options.width, options.width),
      attention_dropout_(options.dropout),
      dropout_(options.dropout) {
  register_module("norm1", norm1_);
  register_module("qkv", qkv_);
  register_module("attention_dropout", attention_dropout_);
  register_module("projection", projection_);
  register_module("norm2", norm2_);
  register_module("up", up_);
  register_module("down", down_);
  register_module("dropout", dropout_);
  mask_ = register_buffer("mask", torch::ones({options.context, options.context}, torch::kBool).triu(1));
}

Tensor BlockImpl::attention(const Tensor& x) {
  const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
  const Tensor qkv = qkv_(x).view({batch, length, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
  Tensor weights = torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(width / heads_));
  weights =
      weights.masked_fill(mask_.index({Slice(0, length), Slice(0, length)}), -std::numeric_limits<float>::infinity());
  weights = attention_dropout_(torch::softmax(weights, -1));
  return projection_(torch::matmul(weights, qkv[2]).transpose(1, 2).reshape({batch, length, width}));
}

Tensor BlockImpl::forward(const Tensor& x) {
  const Tensor y = x + dropout_(attention(norm1_(x)));
  return y + dropout_(down_(torch::gelu(up_(norm2_(y)))));
}

GptImpl::GptImpl(const GptOptions& options)
    : characters_(options.vocabulary, options.width),
      positions_(options.context, options.width),
      dropout_(options.dropout),
      norm_(nn::LayerNormOptions({options.width})),
      head_(nn::LinearOptions(options.width, options.vocabulary).bias(false)) {
  register_module("characters", characters_);
  register_module("positions", positions_);
  register_module("dropout", dropout_);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    blocks_.push_back(register_module("block" + std::to_string(i), Block(options)));
  }
  register_module("norm", norm_);
  register_module("head", head_);
}

Tensor GptImpl::loss(const Tensor& characters, const Tensor& next, std::int64_t rerun_blocks) {
  Tensor x = dropout_(characters_(characters) + positions_(torch::arange(characters.size(1))));
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    x = static_cast<std::int64_t>(i) < rerun_blocks ? rerun([&block](const Tensor& in) { return block(in); }, x)
                                                    : block(x);
  }
  const Tensor scores = head_(norm_(x));
  return nn::functional::cross_entropy(scores.view({-1, scores.size(-1)}), next.reshape(-1));
}

}  // namespace reprise::tools
