#include "training_models.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "reprise/trace/error.h"
#include "training_changing.h"

namespace reprise::benchmarks {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;

// One block of a chain: a tensor in, a tensor out.
using Block = std::function<Tensor(const Tensor&)>;

// Runs blocks one after the other.
Tensor run_chain(const std::vector<Block>& blocks, Tensor x, const Regions& regions) {
  const auto all = static_cast<std::int64_t>(blocks.size());
  const std::int64_t in_regions = regions.none() ? 0 : std::min(regions.blocks, all);
  for (std::int64_t first = 0; first < in_regions; first += regions.every) {
    const std::vector<Block> part(blocks.begin() + first, blocks.begin() + std::min(first + regions.every, in_regions));
    x = tools::rerun([part](const Tensor& in) { return run_chain(part, in, {}); }, x);
  }
  for (std::int64_t i = in_regions; i < all; ++i) x = blocks[static_cast<std::size_t>(i)](x);
  return x;
}

// Blocks of a chain out of modules: `x = block(x)`.
template <typename Pointers>
std::vector<Block> chain_of(const Pointers& modules) {
  std::vector<Block> blocks;
  for (const auto& module : modules) {
    blocks.push_back([module](const Tensor& x) { return module->forward(x); });
  }
  return blocks;
}

// A model out of a net whose forward takes the batch and which blocks are in regions.
template <typename Net, typename... Batch>
Model model_of(std::shared_ptr<Net> net, Batch... batch) {
  Model model;
  model.module = net;
  model.region_loss = [net, batch...](const Regions& regions) { return net->forward(batch..., regions); };
  model.loss = [net, batch...] { return net->forward(batch..., {}); };
  return model;
}

// In C++ a temporary lives until its statement ends, in Python until the call it is given to returns. Where that would
// hold an activation longer than the peers do, the statement is cut in two.

// ---- GPT -----------------------------------------------------------------------------------------------------------

struct GptSizes {
  std::int64_t layers = 8, dim = 256, heads = 8, batch = 4, seq = 256, vocab = 256;
  double dropout = 0.1;
  bool sdpa = false;  // scaled_dot_product_attention, without dropout inside
};

struct GptBlock : nn::Module {
  explicit GptBlock(const GptSizes& s) : sizes(s) {
    l1 = register_module("l1", nn::LayerNorm(nn::LayerNormOptions({s.dim})));
    l2 = register_module("l2", nn::LayerNorm(nn::LayerNormOptions({s.dim})));
    qkv = register_module("qkv", nn::Linear(s.dim, 3 * s.dim));
    o = register_module("o", nn::Linear(s.dim, s.dim));
    a = register_module("a", nn::Linear(s.dim, 4 * s.dim));
    b = register_module("b", nn::Linear(4 * s.dim, s.dim));
  }
  Tensor core(const Tensor& q, const Tensor& k, const Tensor& v) const {
    if (sizes.sdpa) return at::scaled_dot_product_attention(q, k, v, {}, /*dropout_p=*/0.0, /*is_causal=*/true);
    const std::int64_t length = q.size(-2);
    Tensor att = torch::matmul(q, k.transpose(-2, -1)) * std::pow(static_cast<double>(q.size(-1)), -0.5);
    att =
        att.masked_fill(torch::ones({length, length}, torch::kBool).triu(1), -std::numeric_limits<double>::infinity());
    return torch::matmul(torch::dropout(att.softmax(-1), sizes.dropout, /*train=*/true), v);
  }
  Tensor project(const Tensor& y) { return torch::dropout(o(y), sizes.dropout, /*train=*/true); }
  Tensor mlp(const Tensor& x) { return torch::dropout(b(torch::gelu(a(l2(x)))), sizes.dropout, /*train=*/true); }
  Tensor forward(Tensor x) {
    const std::int64_t batch = x.size(0), length = x.size(1), dim = x.size(2);
    const std::vector<Tensor> parts =
        qkv(l1(x)).view({batch, length, 3, sizes.heads, dim / sizes.heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor y = core(parts[0], parts[1], parts[2]);
    x = x + project(y.transpose(1, 2).reshape({batch, length, dim}));
    return x + mlp(x);
  }
  GptSizes sizes;
  nn::LayerNorm l1{nullptr}, l2{nullptr};
  nn::Linear qkv{nullptr}, o{nullptr}, a{nullptr}, b{nullptr};
};

struct Gpt : nn::Module {
  explicit Gpt(const GptSizes& s) {
    e = register_module("e", nn::Embedding(s.vocab, s.dim));
    p = register_module("p", nn::Embedding(s.seq, s.dim));
    for (std::int64_t i = 0; i < s.layers; ++i) {
      layers.push_back(register_module("bl" + std::to_string(i), std::make_shared<GptBlock>(s)));
    }
    ln = register_module("ln", nn::LayerNorm(nn::LayerNormOptions({s.dim})));
    head = register_module("head", nn::Linear(s.dim, s.vocab));
  }
  Tensor forward(const Tensor& tokens, const Tensor& targets, const Regions& regions) {
    Tensor x = e(tokens) + p(torch::arange(tokens.size(1)));
    x = run_chain(chain_of(layers), std::move(x), regions);
    return F::cross_entropy(head(ln(x)).flatten(0, 1), targets.flatten());
  }
  nn::Embedding e{nullptr}, p{nullptr};
  std::vector<std::shared_ptr<GptBlock>> layers;
  nn::LayerNorm ln{nullptr};
  nn::Linear head{nullptr};
};

Model make_gpt(bool sdpa) {
  GptSizes s;
  s.sdpa = sdpa;
  auto net = std::make_shared<Gpt>(s);
  const Tensor tokens = torch::randint(s.vocab, {s.batch, s.seq});
  return model_of(net, tokens, torch::randint(s.vocab, {s.batch, s.seq}));
}

// ---- ResNet: 1 + 18 + 2 shortcut convolutions ----------------------------------------------------------------------

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct ResidualBlock : nn::Module {
  ResidualBlock(std::int64_t in, std::int64_t out, std::int64_t stride) {
    c1 = register_module("c1", conv(in, out, 3, stride));
    b1 = register_module("b1", nn::BatchNorm2d(out));
    c2 = register_module("c2", conv(out, out, 3, 1));
    b2 = register_module("b2", nn::BatchNorm2d(out));
    if (stride != 1 || in != out) {
      shortcut = register_module("sc", nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
    }
  }
  Tensor forward(const Tensor& x) {
    const Tensor r = torch::relu(b1(c1(x)));
    const Tensor sum = b2(c2(r)) + (shortcut ? shortcut->forward(x) : x);
    return torch::relu(sum);
  }
  nn::Conv2d c1{nullptr}, c2{nullptr};
  nn::BatchNorm2d b1{nullptr}, b2{nullptr};
  nn::Sequential shortcut{nullptr};
};

struct ResNet : nn::Module {
  explicit ResNet(std::int64_t width) {
    stem = register_module("stem", nn::Sequential(conv(3, width, 3, 1), nn::BatchNorm2d(width), nn::ReLU()));
    std::int64_t in = width;
    for (const std::int64_t stage : {1, 2, 4}) {
      for (int i = 0; i < 3; ++i) {
        const std::int64_t out = stage * width, stride = i == 0 && stage > 1 ? 2 : 1;
        blocks.push_back(
            register_module("b" + std::to_string(blocks.size()), std::make_shared<ResidualBlock>(in, out, stride)));
        in = out;
      }
    }
    fc = register_module("fc", nn::Linear(4 * width, 10));
  }
  Tensor forward(const Tensor& images, const Tensor& classes, const Regions& regions) {
    std::vector<Block> chain{[this](const Tensor& x) { return stem->forward(x); }};
    for (Block& block : chain_of(blocks)) chain.push_back(std::move(block));
    const Tensor x = run_chain(chain, images, regions);
    return F::cross_entropy(fc(x.mean(at::IntArrayRef{2, 3})), classes);
  }
  nn::Sequential stem{nullptr};
  std::vector<std::shared_ptr<ResidualBlock>> blocks;
  nn::Linear fc{nullptr};
};

Model make_resnet() {
  auto net = std::make_shared<ResNet>(16);
  const Tensor images = torch::randn({32, 3, 64, 64});
  return model_of(net, images, torch::randint(10, {32}));
}

// ---- U-Net ---------------------------------------------------------------------------------------------------------

struct DoubleConvolution : nn::Module {
  DoubleConvolution(std::int64_t in, std::int64_t out) {
    f = register_module("f", nn::Sequential(conv(in, out, 3, 1), nn::BatchNorm2d(out), nn::ReLU(), conv(out, out, 3, 1),
                                            nn::BatchNorm2d(out), nn::ReLU()));
  }
  Tensor forward(const Tensor& x) { return f->forward(x); }
  nn::Sequential f{nullptr};
};

struct UNet : nn::Module {
  UNet(std::int64_t width, std::size_t depth) {
    const auto channels = [width](std::size_t level) { return width << level; };
    for (std::size_t k = 0; k < depth; ++k) {
      const std::string number = std::to_string(k);
      const std::int64_t in = k == 0 ? 3 : channels(k - 1);
      down.push_back(register_module("d" + number, std::make_shared<DoubleConvolution>(in, channels(k))));
      lift.push_back(register_module(
          "t" + number, nn::ConvTranspose2d(nn::ConvTranspose2dOptions(channels(k + 1), channels(k), 2).stride(2))));
      up.push_back(register_module("u" + number, std::make_shared<DoubleConvolution>(2 * channels(k), channels(k))));
    }
    middle = register_module("m", std::make_shared<DoubleConvolution>(channels(depth - 1), channels(depth)));
    head = register_module("h", nn::Conv2d(nn::Conv2dOptions(width, 2, 1)));
  }
  Tensor forward(const Tensor& images, const Tensor& classes, const Regions& regions) {
    const auto run = [&regions](std::function<Tensors(const Tensors&)> level, const Tensors& inputs) {
      return regions.none() ? level(inputs)[0] : tools::rerun(std::move(level), inputs)[0];
    };
    Tensor x = images;
    std::vector<Tensor> skips;
    for (auto& level : down) {
      x = run([level](const Tensors& in) { return Tensors{level->forward(in[0])}; }, {x});
      skips.push_back(x);
      x = torch::max_pool2d(x, 2);
    }
    x = run([this](const Tensors& in) { return Tensors{middle->forward(in[0])}; }, {x});
    for (std::size_t k = down.size(); k-- > 0;) {
      // The up-convolution and the concatenation are inside the region.
      const auto level = [this, k](const Tensors& in) { return Tensors{up[k]->forward(lifted(k, in[0], in[1]))}; };
      const Tensor skip = std::move(skips.back());
      skips.pop_back();
      x = run(level, {x, skip});
    }
    return F::cross_entropy(head(x), classes);
  }
  Tensor lifted(std::size_t k, const Tensor& x, const Tensor& skip) {
    return torch::cat({skip, lift[k]->forward(x)}, 1);
  }
  std::vector<std::shared_ptr<DoubleConvolution>> down, up;
  std::vector<nn::ConvTranspose2d> lift;
  std::shared_ptr<DoubleConvolution> middle;
  nn::Conv2d head{nullptr};
};

Model make_unet() {
  auto net = std::make_shared<UNet>(16, 3);
  const Tensor images = torch::randn({32, 3, 64, 64});
  return model_of(net, images, torch::randint(2, {32, 64, 64}));
}

// ---- LSTM from cells -----------------------------------------------------------------------------------------------

// With a head its loss is the mean square of the head's output, without one the sum of squares of the last state.
struct Lstm : nn::Module {
  Lstm(std::int64_t input, std::int64_t hidden, bool with_head) : size(hidden) {
    cell = register_module("c", nn::LSTMCell(input, hidden));
    if (with_head) head = register_module("o", nn::Linear(hidden, input));
  }
  // x, h, c -> h, c
  Tensors segment(const Tensors& in) {
    Tensor h = in[1], c = in[2];
    for (std::int64_t t = 0; t < in[0].size(0); ++t) std::tie(h, c) = cell(in[0][t], std::make_tuple(h, c));
    return {h, c};
  }
  Tensor forward(const Tensor& x, const Regions& regions) {
    Tensor h = torch::zeros({x.size(1), size});
    Tensors state{h, h};
    if (regions.none()) {
      state = segment({x, state[0], state[1]});
    } else {
      for (std::int64_t t = 0; t < x.size(0); t += regions.every) {
        const Tensor part = x.slice(0, t, std::min(t + regions.every, x.size(0)));
        state = tools::rerun([this](const Tensors& in) { return segment(in); }, {part, state[0], state[1]});
      }
    }
    h = state[0];
    return head ? head(h).pow(2).mean() : h.pow(2).sum();
  }
  std::int64_t size;
  nn::LSTMCell cell{nullptr};
  nn::Linear head{nullptr};
};

Model make_lstm() {
  auto net = std::make_shared<Lstm>(128, 256, true);
  return model_of(net, torch::randn({200, 32, 128}));
}

Model make_lstm_small() {
  auto net = std::make_shared<Lstm>(32, 32, false);
  return model_of(net, torch::randn({200, 4, 32}));
}

Model make_lstm_long() {
  auto net = std::make_shared<Lstm>(64, 128, true);
  return model_of(net, torch::randn({2000, 16, 64}));
}

// ---- an MLP, and LibTorch's own transformer ------------------------------------------------------------------------

struct Mlp : nn::Module {
  Mlp(std::size_t depth, std::int64_t width) {
    for (std::size_t i = 0; i < depth; ++i) {
      layers.push_back(register_module("l" + std::to_string(i), nn::Linear(width, width)));
    }
    head = register_module("head", nn::Linear(width, 10));
  }
  Tensor forward(const Tensor& x, const Tensor& classes, const Regions& regions) {
    std::vector<Block> chain;
    for (auto& layer : layers) chain.push_back([layer](const Tensor& z) mutable { return torch::gelu(layer(z)); });
    return F::cross_entropy(head(run_chain(chain, x, regions)), classes);
  }
  std::vector<nn::Linear> layers;
  nn::Linear head{nullptr};
};

Model make_mlp() {
  auto net = std::make_shared<Mlp>(12, 512);
  const Tensor x = torch::randn({1024, 512});
  return model_of(net, x, torch::randint(10, {1024}));
}

struct Transformer : nn::Module {
  Transformer(std::int64_t dim, std::int64_t heads, std::int64_t depth) {
    const auto layer = nn::TransformerEncoderLayer(
        nn::TransformerEncoderLayerOptions(dim, heads).dim_feedforward(4 * dim).dropout(0.1));
    encoder = register_module("encoder", nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, depth)));
    head = register_module("head", nn::Linear(dim, 10));
  }
  Tensor forward(const Tensor& x, const Tensor& classes, const Regions& regions) {
    return F::cross_entropy(head(encode(x, regions).mean(0)), classes);
  }
  Tensor encode(const Tensor& x, const Regions& regions) {
    if (regions.none()) return encoder->forward(x);
    std::vector<std::shared_ptr<nn::TransformerEncoderLayerImpl>> layers;
    for (const auto& layer : *encoder->layers) {
      layers.push_back(std::dynamic_pointer_cast<nn::TransformerEncoderLayerImpl>(layer));
    }
    return run_chain(chain_of(layers), x, regions);
  }
  nn::TransformerEncoder encoder{nullptr};
  nn::Linear head{nullptr};
};

Model make_transformer() {
  auto net = std::make_shared<Transformer>(256, 8, 6);
  const Tensor x = torch::randn({128, 8, 256});  // length, batch, width
  return model_of(net, x, torch::randint(10, {8}));
}

const std::vector<std::pair<std::string, std::function<Model()>>>& makers() {
  static const std::vector<std::pair<std::string, std::function<Model()>>> all{
      {"gpt", [] { return make_gpt(false); }},
      {"gpt-sdpa", [] { return make_gpt(true); }},
      {"resnet", make_resnet},
      {"unet", make_unet},
      {"lstm", make_lstm},
      {"lstm-small", make_lstm_small},
      {"lstm-long", make_lstm_long},
      {"mlp", make_mlp},
      {"transformer", make_transformer},
  };
  return all;
}

}  // namespace

std::vector<std::string> unchanging_model_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : makers()) names.push_back(name);
  return names;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names = unchanging_model_names();
  for (const auto& [name, make] : changing_models()) names.push_back(name);
  return names;
}

Model make_model(const std::string& name) {
  for (const auto* const some : {&makers(), &changing_models()}) {
    for (const auto& [known, make] : *some) {
      if (known != name) continue;
      Model model = make();
      model.name = name;
      return model;
    }
  }
  throw BadOption("[bench] there is no model '" + name + "'");
}

}  // namespace reprise::benchmarks
