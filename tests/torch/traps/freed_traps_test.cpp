// Memory that the program frees while its storage lives on: as fully_shard does with the parameters of each layer, for
// good, and to have more of it.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/record_function.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;

void resize(const at::Tensor& tensor, std::size_t bytes) {
  if (tensor.is_cpu()) {
    at::native::resize_bytes_cpu(tensor.storage().unsafeGetStorageImpl(), bytes);
  } else {
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(tensor.storage(), bytes);
  }
}

std::string bits_of(const at::Tensor& tensor) {
  const at::Tensor on_host = tensor.cpu();
  return {static_cast<const char*>(on_host.const_data_ptr()), on_host.nbytes()};
}

// As a library does it: below autograd, and not as an operator of the program's.
void write(const at::Tensor& tensor, const std::string& bits) {
  if (tensor.is_cpu()) {
    std::memcpy(tensor.storage().mutable_data(), bits.data(), bits.size());
    return;
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  const at::RecordFunctionGuard unseen(false);
  tensor.copy_(at::from_blob(const_cast<char*>(bits.data()), tensor.sizes(), tensor.scalar_type()));
}

// A tensor whose contents are there only at times. No version counter sees it go and come.
class Gathered {
 public:
  explicit Gathered(const at::Tensor& contents)
      : bits_(bits_of(contents)), tensor_(contents.clone().requires_grad_()) {}

  [[nodiscard]] const at::Tensor& tensor() const { return tensor_; }
  void gather() const {
    if (tensor_.storage().nbytes() == 0) resize(tensor_, bits_.size());
    write(tensor_, bits_);
  }
  void free() const { resize(tensor_, 0); }

 private:
  const std::string bits_;  // no memory of LibTorch's
  at::Tensor tensor_;
};

// A residual layer whose parameters are there while it runs and while its backward runs.
class ShardedLayer {
 public:
  explicit ShardedLayer(std::int64_t width) {
    for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{width, width}, {width}, {width, width}, {width}}) {
      parameters_.push_back(std::make_shared<Gathered>(torch::randn(sizes) / 6));
    }
  }

  at::Tensor forward(at::Tensor x) const {
    gather();
    if (x.requires_grad()) {
      x = x.alias();
      x.register_hook([all = parameters_](const at::Tensor&) { free(all); });  // nothing of the layer is left to run
    }
    const auto& p = parameters_;
    const auto h = torch::gelu(torch::linear(x, p[0]->tensor(), p[1]->tensor()));
    auto y = x + torch::tanh(torch::linear(h * torch::sigmoid(h), p[2]->tensor(), p[3]->tensor()));
    y.register_hook([all = parameters_](const at::Tensor&) {
      for (const auto& one : all) one->gather();
    });
    RECORD_USER_SCOPE("FSDP::post_forward");
    free(parameters_);
    return y;
  }
  void gather() const {
    for (const auto& one : parameters_) one->gather();
  }
  void gradients(Tensors& result) const {
    for (const auto& one : parameters_) result.push_back(one->tensor().grad());
  }
  void zero_grad() const {
    for (const auto& one : parameters_) one->tensor().mutable_grad() = at::Tensor();
  }

 private:
  using Parameters = std::vector<std::shared_ptr<Gathered>>;
  static void free(const Parameters& all) {
    for (const auto& one : all) one->free();
  }

  Parameters parameters_;
};

const Traps freed_traps({
    {"ParametersThatAreThereOnlyWhileTheirLayerRuns",
     [] {
       std::vector<ShardedLayer> layers;
       for (int i = 0; i < 5; ++i) layers.emplace_back(24);
       const auto first = torch::randn({24, 24}).requires_grad_();
       const auto data = torch::randn({64, 24});
       return [=] {
         for (const auto& layer : layers) layer.zero_grad();
         first.mutable_grad() = at::Tensor();
         auto x = torch::matmul(data, first);
         for (const auto& layer : layers) x = layer.forward(x);
         torch::tanh(x * 0.5).sum().backward();
         Tensors result{first.grad()};
         for (const auto& layer : layers) layer.gradients(result);
         return result;
       };
     },
     4},
    {"FreedForGoodAfterItsLastUse",
     [] {
       nn::Linear linear(24, 24);
       auto front = layers(24);
       const auto shift = torch::randn({64, 24});
       return [=]() mutable {
         linear->zero_grad();
         const auto moved = shift.clone();
         const auto h =
             torch::tanh(torch::sigmoid(linear(front->forward(shift))) + moved);  // an addition saves nothing
         resize(moved, 0);
         torch::exp(torch::sin(h) * 0.3).sum().backward();
         return gradients(*linear);
       };
     }},
    {"MovedToLargerMemory",
     [] {
       nn::Linear linear(24, 24);
       auto front = layers(24);
       const auto shift = torch::randn({64, 24});
       return [=]() mutable {
         linear->zero_grad();
         const auto moved = shift.clone();
         const auto h = torch::tanh(torch::sigmoid(linear(front->forward(shift))) + moved);
         resize(moved, 2 * moved.nbytes());
         torch::exp(torch::sin(h) * 0.3).sum().backward();
         return gradients(*linear);
       };
     }},
    {"AnActivationIsFreedByHand",
     [] {
       nn::Linear linear(24, 24);
       const auto x = torch::randn({64, 24});
       return [=]() mutable {
         linear->zero_grad();
         const auto h = linear(x) + 1.0;  // nobody saves it
         const auto y = torch::exp(h * 0.1 + x);
         resize(h, 0);
         torch::sin(torch::tanh(y)).sum().backward();
         return gradients(*linear);
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
