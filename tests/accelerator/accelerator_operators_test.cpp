// Operators of many kinds on the simulated accelerator: results and gradients as on the CPU.
#include <functional>

#include "accelerator/accelerator_fixture.h"

namespace reprise::testing::accelerator {
namespace {

namespace F = torch::nn::functional;
using at::Tensor;
using Tensors = std::vector<Tensor>;

struct Case {
  const char* name;
  std::function<Tensors(const Tensor& x, const Tensor& y)> run;  // of two 6 x 8 tensors
};

std::vector<Case> cases() {
  const auto index = [](const Tensor& x, std::initializer_list<std::int64_t> numbers) {
    return at::tensor(std::vector<std::int64_t>(numbers)).to(x.device());
  };
  return {
      {"elementwise",
       [](auto& x, auto& y) { return Tensors{at::gelu(x) * y.sigmoid() + at::softplus(x) / (y.abs() + 1)}; }},
      {"comparisons",
       [](auto& x, auto& y) {
         return Tensors{at::where(x > y, x, y * 2), x.clamp(-1, 1), at::maximum(x, y)};
       }},
      {"numbers and types",
       [](auto& x, auto& y) {
         return Tensors{x * 2.5 + 1, y.to(at::kDouble) / 3, (x > 0).to(at::kLong) + 1};
       }},
      {"reductions",
       [](auto& x, auto& y) {
         return Tensors{x.sum(1),       y.mean(0), x.var(1),  std::get<0>(x.max(1)),
                        y.logsumexp(1), x.norm(),  y.prod(1), x.cumsum(0)};
       }},
      {"softmax",
       [](auto& x, auto& y) {
         return Tensors{x.softmax(1), y.log_softmax(0)};
       }},
      {"products",
       [](auto& x, auto& y) {
         return Tensors{x.mm(y.t()), x.matmul(y.transpose(0, 1)), at::einsum("ij,kj->ik", {x, y})};
       }},
      {"batched products",
       [](auto& x, auto& y) {
         return Tensors{x.view({2, 3, 8}).bmm(y.view({2, 3, 8}).transpose(1, 2))};
       }},
      {"views",
       [](auto& x, auto& y) {
         Tensors all = x.split(2, 1);
         for (const Tensor& part : y.unbind(0)) all.push_back(part);
         for (const Tensor& view :
              {x.t(), x.narrow(1, 2, 3), x.slice(0, 1, 6, 2), x.select(1, -1), x.diagonal(), x.unfold(1, 3, 2),
               x.unsqueeze(1).expand({6, 4, 8}), x.reshape({-1}), x.view({3, 16}), x.as_strided({3, 3}, {1, 2}, 4)})
           all.push_back(view * 2);
         return all;
       }},
      {"in place",
       [](auto& x, auto& y) {
         Tensor z = x * 1, w = y * 2;
         z.add_(y).mul_(0.5);
         z.narrow(1, 0, 4).add_(1);
         z.t().mul_(0.5);
         z.masked_fill_(y > 0.5, 0.25);
         w.narrow(0, 1, 3).tanh_();
         return Tensors{z, w};
       }},
      {"joining",
       [](auto& x, auto& y) {
         return Tensors{at::cat({x, y}, 1), at::stack({x, y}), x.repeat({2, 1}), at::roll(x, 1, 0), y.flip(1)};
       }},
      {"indexing",
       [index](auto& x, auto& y) {
         const Tensor some = index(x, {0, 2, 2, 5});
         Tensor z = x * 1;
         z.index_put_({some}, at::ones({}, x.options()));
         z.index_add_(0, some, y.index_select(0, some));
         return Tensors{x.index_select(0, some),
                        x.index({some}),
                        x.gather(1, some.view({4, 1}) % 6),
                        z,
                        x.index({at::tensor({1, 3})}),
                        at::zeros_like(x).scatter_add(0, some.view({1, 4}), y.narrow(0, 0, 1).narrow(1, 0, 4))};
       }},
      {"shapes by contents",
       [](auto& x, auto& y) {
         return Tensors{x.masked_select(y > 0), x.index({x > 0}), (x > 0).nonzero()};
       }},
      {"sorting",
       [](auto& x, auto& y) {
         return Tensors{std::get<0>(x.sort(1)), std::get<1>(y.topk(3, 1)), x.argmax(1)};
       }},
      {"convolutions",
       [](auto& x, auto& y) {
         const Tensor images = x.view({1, 2, 4, 6}), weights = y.view({4, 2, 2, 3});
         return Tensors{at::conv2d(images, weights), at::conv_transpose2d(images, weights.transpose(0, 1), {}, 2),
                        at::conv1d(x.view({2, 3, 8}), y.narrow(0, 0, 3).view({4, 3, 2}))};
       }},
      {"pooling",
       [](auto& x, auto&) {
         const Tensor images = x.view({1, 2, 4, 6});
         return Tensors{at::max_pool2d(images, 2), at::avg_pool2d(images, 2), at::adaptive_avg_pool2d(images, {2, 2}),
                        at::upsample_nearest2d(images, {8, 8}), at::constant_pad_nd(images, {1, 1})};
       }},
      {"norms",
       [](auto& x, auto& y) {
         const Tensor scale = y.select(0, 0);
         Tensor mean = at::zeros({8}, x.options()), variance = at::ones({8}, x.options());
         const Tensor normed = at::batch_norm(x, scale, {}, mean, variance, true, 0.1, 1e-5, false);
         return Tensors{at::layer_norm(x, {8}, scale), at::group_norm(x.view({2, 4, 6}), 2), normed, mean, variance};
       }},
      {"losses",
       [index](auto& x, auto& y) {
         const Tensor target = index(x, {0, 1, 2, 3, 4, 5});
         return Tensors{F::cross_entropy(x, target),
                        F::mse_loss(x, y),
                        F::smooth_l1_loss(x, y),
                        at::nll_loss(x, target),
                        F::binary_cross_entropy_with_logits(x, y.sigmoid()),
                        F::kl_div(x.log_softmax(1), y.softmax(1), F::KLDivFuncOptions(torch::kBatchMean))};
       }},
      {"embeddings",
       [index](auto& x, auto&) {
         const Tensor words = index(x, {5, 0, 0, 3});
         return Tensors{at::embedding(x, words), std::get<0>(at::embedding_bag(x, words, index(x, {0, 2})))};
       }},
      {"attention",
       [](auto& x, auto& y) {
         return Tensors{at::scaled_dot_product_attention(x.view({1, 2, 3, 8}), y.view({1, 2, 3, 8}),
                                                         y.view({1, 2, 3, 8}), {}, 0, true)};
       }},
      {"complex numbers",
       [](auto& x, auto& y) {
         const Tensor z = at::complex(x, y);
         return Tensors{at::view_as_real(z * z.conj()), z.abs(), at::view_as_real(z.conj().mm(z.t())), at::real(z * 2),
                        at::view_as_real(at::fft_rfft(x))};
       }},
      {"linear algebra",
       [](auto& x, auto&) {
         const Tensor square = x.mm(x.t()) + 8 * at::eye(6, x.options());
         return Tensors{at::linalg_inv(square), at::linalg_cholesky(square), at::linalg_det(square),
                        at::linalg_solve(square, x)};
       }},
      {"triangles and ranges",
       [](auto& x, auto&) {
         return Tensors{x.tril(), x.triu(1), at::arange(6, x.options()).view({6, 1}) * x,
                        at::linspace(0, 1, 8, x.options()) + x};
       }},
  };
}

Tensors results_of(const Case& one, c10::Device device) {
  torch::manual_seed(5);
  const Tensor x = torch::randn({6, 8}).to(device).requires_grad_(),
               y = torch::randn({6, 8}).to(device).requires_grad_();
  Tensors results = one.run(x, y);
  Tensor loss = at::zeros({}, at::TensorOptions(device));
  for (const Tensor& result : results)
    if (result.requires_grad()) loss = loss + (result * 0.1).sin().sum().to(at::kFloat);
  if (loss.requires_grad()) {
    for (const Tensor& gradient : torch::autograd::grad({loss}, {x, y}, {}, false, false, true))
      results.push_back(gradient);
  }
  for (Tensor& result : results)
    if (result.defined()) result = result.detach().cpu();
  return results;
}

class AcceleratorOperators : public Accelerator {};

TEST_F(AcceleratorOperators, AreThoseOfTheCpu) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const Tensors expected = results_of(one, at::kCPU);
    // The second time the shapes are known, and nobody waits for them.
    for (int time = 0; time < 2; ++time) {
      Tensors results;
      EXPECT_NO_THROW(results = results_of(one, device_));
      EXPECT_EQ(results.size(), expected.size());
      for (std::size_t i = 0; i < std::min(results.size(), expected.size()); ++i) {
        EXPECT_EQ(results[i].defined(), expected[i].defined()) << i;
        if (!results[i].defined() || !expected[i].defined()) continue;
        EXPECT_EQ(results[i].scalar_type(), expected[i].scalar_type()) << i;
        EXPECT_TRUE(results[i].sizes() == expected[i].sizes() && at::allclose(results[i], expected[i], 1e-4, 1e-5))
            << i;
      }
    }
  }
}

// LibTorch has one operator for a step of these on accelerators, and a dozen on the CPU.
TEST_F(AcceleratorOperators, OfRecurrentLayersAreThoseOfTheCpu) {
  const auto train = [](auto make, c10::Device device) {
    torch::manual_seed(4);
    auto layer = make();
    const Tensor x = torch::randn({5, 3, 6}).to(device).requires_grad_();
    layer->to(device);
    const Tensor y = std::get<0>(layer->forward(x));
    y.sin().sum().backward();
    Tensors results{y.detach().cpu(), x.grad().cpu()};
    for (const Tensor& parameter : layer->parameters()) results.push_back(parameter.grad().cpu());
    return results;
  };
  const auto compare = [&](auto make) {
    const Tensors expected = train(make, at::kCPU), results = train(make, device_);
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_TRUE(at::allclose(results[i], expected[i], 1e-4, 1e-5)) << i;
  };
  compare([] { return torch::nn::LSTM(torch::nn::LSTMOptions(6, 7).num_layers(2)); });
  compare([] { return torch::nn::LSTM(torch::nn::LSTMOptions(6, 7).bias(false).bidirectional(true)); });
  compare([] { return torch::nn::GRU(torch::nn::GRUOptions(6, 7)); });
  compare([] { return torch::nn::GRU(torch::nn::GRUOptions(6, 7).bias(false)); });
  compare([] { return torch::nn::RNN(torch::nn::RNNOptions(6, 7)); });
}

TEST_F(AcceleratorOperators, ThatSizeTheirResultsThemselvesDoSo) {
  const Tensor x = numbers(6);
  Tensor out = at::empty({0}, x.options());
  at::add_out(out, x, x);
  EXPECT_TRUE(at::equal(out.cpu(), at::arange(6) * 2));
}

// Also the first time, when nobody knows how much they need.
TEST_F(AcceleratorOperators, ThatGetNoMemoryHaveDoneNothing) {
  const Tensor x = at::ones({7, 5}, at::TensorOptions(device_)), mean = full(5, 0), variance = full(5, 1);
  for (const bool known : {false, true}) {
    fail_allocation_after(0);
    EXPECT_THROW(at::native_batch_norm(x, {}, {}, mean, variance, true, 0.5, 1e-5), c10::OutOfMemoryError) << known;
    EXPECT_TRUE(all_are(mean, 0)) << known;
  }
  at::native_batch_norm(x, {}, {}, mean, variance, true, 0.5, 1e-5);
  EXPECT_TRUE(all_are(mean, 0.5));
}

TEST_F(AcceleratorOperators, WithoutAnyLayoutButStridesAreRefused) {
  EXPECT_THROW(at::eye(3, at::TensorOptions(device_)).to_sparse(), c10::Error);
}

}  // namespace
}  // namespace reprise::testing::accelerator
