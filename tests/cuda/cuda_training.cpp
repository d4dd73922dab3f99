#include "cuda/cuda_training.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <optional>

#include "cuda/stub_driver.h"

namespace reprise::testing {
namespace {

using at::Tensor;
namespace cca = c10::cuda::CUDACachingAllocator;

constexpr std::int64_t words = 500, width = 256, heads = 8, batch = 32, length = 128;
constexpr int blocks = 6, steps = 5;

struct Block {
  Tensor qkv, proj, up, down, one, two;
};

class Gpt {
 public:
  Gpt() {
    head_ = add({words, width});
    for (int i = 0; i < blocks; ++i) {
      blocks_.push_back({add({3 * width, width}), add({width, width}), add({4 * width, width}), add({width, 4 * width}),
                         add({width}), add({width})});
    }
  }
  [[nodiscard]] const std::vector<Tensor>& parameters() const { return parameters_; }

  [[nodiscard]] Tensor loss(Tensor h, const Tensor& y) const {
    for (const Block& block : blocks_) {
      const Tensor qkv = torch::linear(torch::layer_norm(h, {width}, block.one), block.qkv);
      const auto parts = qkv.view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
      const Tensor scores = (parts[0].matmul(parts[1].transpose(-2, -1)) / 4).softmax(-1);
      const Tensor mixed = torch::dropout(scores, 0.1, true).matmul(parts[2]).transpose(1, 2);
      h = h + torch::dropout(torch::linear(mixed.reshape({batch, length, width}), block.proj), 0.1, true);
      const Tensor up = torch::linear(torch::layer_norm(h, {width}, block.two), block.up);
      h = h + torch::linear(torch::gelu(up), block.down);
    }
    return torch::nn::functional::cross_entropy(torch::linear(h, head_).view({-1, words}), y.view(-1));
  }

 private:
  Tensor add(c10::IntArrayRef sizes) {
    parameters_.push_back(torch::zeros(sizes, cuda()).requires_grad_());
    return parameters_.back();
  }

  std::vector<Tensor> parameters_;
  Tensor head_;
  std::vector<Block> blocks_;
};

}  // namespace

CudaMemory cuda_memory() {
  const auto stats = cca::getDeviceStats(0);
  return {stats.allocated_bytes[0].current, stats.allocated_bytes[0].peak, stats.reserved_bytes[0].peak,
          stats.active_bytes[0].current - stats.allocated_bytes[0].current};
}

void mark_cuda_peaks() {
  cca::resetPeakStats(0);
}

void empty_cuda_cache() {
  cca::emptyCache();
}

CudaOutcome train_on_cuda(Session* session, const std::function<void(int step)>& after_step) {
  at::Generator generator = at::globalContext().defaultGenerator(cuda());
  generator.set_current_seed(1);
  generator.set_offset(0);
  const Gpt model;
  const Tensor x = torch::zeros({batch, length, width}, cuda());
  const Tensor y = torch::zeros({batch, length}, torch::TensorOptions(cuda()).dtype(torch::kLong));
  torch::optim::Adam adam(model.parameters());
  CudaOutcome outcome;
  for (int i = 0; i < steps; ++i) {
    if (i == 1) {
      empty_cuda_cache();
      mark_cuda_peaks();
    }
    const std::uint64_t launches = stub_launches();
    {
      std::optional<Step> step;
      if (session) step.emplace(session->step());
      const Tensor loss = model.loss(x, y);
      adam.zero_grad();
      loss.backward();
      adam.step();
    }
    outcome.launches = stub_launches() - launches;
    outcome.offsets.push_back(generator.get_offset());
    if (after_step) after_step(i);
  }
  outcome.memory = cuda_memory();
  return outcome;
}

}  // namespace reprise::testing
