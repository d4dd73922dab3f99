// The model of `reprise train`: a GPT that predicts the next character.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace reprise::tools {

struct GptOptions {
  std::int64_t vocabulary = 256;
  std::int64_t layers = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t context = 128;
  double dropout = 0.1;
};

// Attention and a small network, each behind a layer norm and added to what came in.
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const GptOptions&);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor attention(const torch::Tensor& x);

  std::int64_t heads_;
  torch::nn::LayerNorm norm1_, norm2_;
  torch::nn::Linear qkv_, projection_, up_, down_;
  torch::nn::Dropout attention_dropout_, dropout_;
  torch::Tensor mask_;  // where a character would look into the future
};
TORCH_MODULE(Block);

class GptImpl : public torch::nn::Module {
 public:
  explicit GptImpl(const GptOptions&);

  // Characters and those that follow them, both [batch, context], to the mean loss. The first `rerun_blocks` evict
  // what happens in them and are run again in backward, as checkpointing is done elsewhere.
  torch::Tensor loss(const torch::Tensor& characters, const torch::Tensor& next, std::int64_t rerun_blocks = 0);

 private:
  torch::nn::Embedding characters_, positions_;
  torch::nn::Dropout dropout_;
  std::vector<Block> blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
};
TORCH_MODULE(Gpt);

}  // namespace reprise::tools
