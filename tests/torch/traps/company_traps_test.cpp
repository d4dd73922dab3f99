// In company: others' hooks, compiled modules, and settings of the thread that change what operators do.
#include <c10/core/CPUAllocator.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/csrc/jit/api/module.h>

#include <optional>

#include "torch/libtorch/libtorch_versions.h"
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
using at::Tensor;

nn::Sequential model_of(std::int64_t width) {
  return nn::Sequential(nn::Linear(width, 64), nn::GELU(), nn::Dropout(0.2), nn::Linear(64, width), nn::Tanh());
}

// Keeps a copy, as offloading does.
class CopyingHooks final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const Tensor& tensor) override { copy_ = tensor.detach().clone(); }
  Tensor call_unpack_hook() override { return copy_; }

 private:
  Tensor copy_;
};

// A node of our own whose saved tensor has hooks of its own.
struct SquareWithHooks : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return {gradients[0] * 2 * saved.unpack(getptr())};
  }
  torch::autograd::SavedVariable saved;
};

Tensor square_with_hooks(const Tensor& x) {
  Tensor y;
  {
    const torch::NoGradGuard off;
    y = x * x;
  }
  auto node = internal::libtorch::make_node<SquareWithHooks>();
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  node->saved = torch::autograd::SavedVariable(x, false);
  node->saved.register_hooks(std::make_unique<CopyingHooks>());
  torch::autograd::create_gradient_edge(y, node);
  return y;
}

class DefaultType {
 public:
  explicit DefaultType(at::ScalarType type) : before_(c10::get_default_dtype()) {
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(type));
  }
  ~DefaultType() { c10::set_default_dtype(before_); }
  DefaultType(const DefaultType&) = delete;
  DefaultType& operator=(const DefaultType&) = delete;

 private:
  caffe2::TypeMeta before_;
};

const Traps company_traps({
    {"ModuleOfTheJitCompiler",
     [] {
       auto module = std::make_shared<torch::jit::Module>("M");
       module->register_parameter("weight", torch::randn({32, 32}), false);
       module->define(R"(
         def forward(self, x):
           y = torch.tanh(torch.matmul(x, self.weight))
           return y * torch.sigmoid(x) + torch.relu(y)
       )");
       auto front = layers(32);
       const auto x = torch::randn({64, 32});
       return [=]() mutable {
         const Tensor weight = module->attr("weight").toTensor();
         weight.mutable_grad() = Tensor();
         module->forward({front->forward(x)}).toTensor().sum().backward();
         return gradients(*front, {weight.grad()});
       };
     },
     3},
    {"DefaultTypeIsDouble",
     [] {
       auto model = model_of(32), front = layers(32);
       const auto x = torch::randn({64, 32});
       return [=]() mutable {
         const DefaultType type(at::kDouble);
         const Tensor y = model->forward(front->forward(x));
         // Whole numbers become numbers of the default type.
         const Tensor mixed = y * torch::arange(32).div(7) + torch::full({32}, 0.5);
         mixed.tanh().sum().backward();
         return gradients(*model, {mixed.detach()});
       };
     }},
    {"DispatchKeyOfTheThreadIsExcluded",
     [] {
       auto model = model_of(32), front = layers(32);
       const auto x = torch::randn({64, 32});
       return [=]() mutable {
         Tensor shift;
         const Tensor y = front->forward(x);
         {
           const at::AutoDispatchBelowADInplaceOrView below;
           shift = y.exp().sum(1, true);  // without a graph
         }
         (model->forward(y) * shift).tanh().sum().backward();
         return gradients(*model);
       };
     }},
    {"PartsOfABatchHaveGraphsOfTheirOwn",
     [] {
       auto model = model_of(32), front = layers(32);
       const auto x = torch::randn({4, 32, 32});
       return [=]() mutable {
         // As data-parallel training does: one graph for each part, backward one after the other, gradients summed.
         Tensors losses;
         for (int part = 0; part < 4; ++part) losses.push_back(model->forward(front->forward(x[part])).pow(2).mean());
         for (const Tensor& loss : losses) loss.backward();
         return gradients(*model);
       };
     }},
});

// A saved tensor has one pair of hooks. In a step it is ours, so one that is set by hand is refused, as LibTorch does
// wherever default hooks are there.
TEST(Company, HooksSetByHandOnASavedTensorAreLibTorchsOwnErrorInAStepAndWorkOutside) {
  const Tensor x = torch::randn({8}).requires_grad_(true);
  square_with_hooks(x.exp()).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  Session session;
  const auto step = session.step();
  const Tensor y = x.exp();
  EXPECT_THROW(square_with_hooks(y), c10::Error);
  y.sum().backward();
}

// Another library that has put its own allocator in front of ours: bytes cannot be counted, everything else works.
TEST(Company, AnotherLibrarysAllocatorInFrontAllowsSessionsWithoutABudgetAlone) {
  c10::Allocator* const ours = c10::GetCPUAllocator();
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 255);
  const auto slope = [](bool in_session) {
    torch::manual_seed(1);
    const Tensor x = torch::randn({16}).requires_grad_(true);
    std::optional<Session> session;
    std::optional<Step> step;
    if (in_session) step.emplace(session.emplace().step());
    x.exp().tanh().sum().backward();
    return x.grad();
  };
  EXPECT_TRUE(slope(true).equal(slope(false)));
  EXPECT_THROW(Session({.budget = 1 << 20}), BadOption);
  c10::SetCPUAllocator(ours, 255);
  EXPECT_NO_THROW(Session({.budget = 1 << 20}));
}

}  // namespace
}  // namespace reprise::testing
