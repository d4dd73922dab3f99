// Where data comes from and what shape it is in: filled by hand, borrowed, indexed, complex, overlapping, empty.
#include "torch/here.h"
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
using torch::indexing::None;
using torch::indexing::Slice;

const Traps data_traps({
    {"ZerosFilledThroughAnAccessor",
     [] {
       nn::Linear linear(16, 16);
       return [=]() mutable {
         auto x = torch::zeros({32, 16});
         auto access = x.accessor<float, 2>();
         for (int i = 0; i < 32; ++i)
           for (int j = 0; j < 16; ++j) access[i][j] = static_cast<float>(i - j);
         torch::sigmoid(torch::tanh(linear(x * 0.1))).sum().backward();
         return gradients(*linear);
       };
     },
     1, false, false, "the host cannot write its memory"},
    {"EmptyTensorFilledThroughAPointer",
     [] {
       nn::Linear linear(16, 16);
       return [=]() mutable {
         const auto x = torch::empty({32, 16});
         auto* at = x.data_ptr<float>();
         for (int i = 0; i < 32 * 16; ++i) at[i] = 0.01f * static_cast<float>(i);
         torch::sigmoid(torch::tanh(linear(x * 1.5)) * torch::cos(x)).sum().backward();
         return gradients(*linear);
       };
     },
     1, false, false, "the host cannot write its memory"},
    {"FactoriesFilledThroughAPointer",
     [] {
       nn::Linear linear(16, 16);
       const auto like = torch::randn({32, 16});
       return [=]() mutable {
         auto h = linear(like);
         for (const at::Tensor& x : {torch::ones_like(like), torch::zeros_like(like), torch::full({32, 16}, 2.0),
                                     like.new_zeros({32, 16}), torch::arange(512.0).view({32, 16})}) {
           x.data_ptr<float>()[7] = 5;
           h = torch::tanh(h * torch::sin(x));
         }
         h.sum().backward();
         return gradients(*linear);
       };
     },
     1, false, false, "the host cannot write its memory"},
    {"TensorFromAList",
     [] {
       nn::Linear linear(4, 4);
       return [=]() mutable {
         const auto x = to_here(torch::tensor({{1.f, 2.f, 3.f, 4.f}, {5.f, 6.f, 7.f, 8.f}}));
         torch::tanh(linear(x * 0.1) * torch::cos(x * 2)).sum().backward();
         return gradients(*linear);
       };
     }},
    {"MemoryOfTheUser",
     [] {
       nn::Linear linear(16, 16);
       return [=]() mutable {
         std::vector<float> memory(32 * 16, 0.5f);
         const auto x = torch::from_blob(memory.data(), {32, 16});
         torch::tanh(torch::sigmoid(linear(x)) * x).sum().backward();
         return gradients(*linear);
       };
     },
     1, false, false, "memory of the host"},
    {"MemoryOfTheUserIsWrittenByAnOperator",
     [] {
       nn::Linear linear(16, 16);
       const auto memory = std::make_shared<std::vector<float>>(32 * 16, 0.5f);
       return [=]() mutable {
         const auto x = torch::from_blob(memory->data(), {32, 16});
         auto loss = torch::tanh(torch::sigmoid(linear(x * 1.0) + x)).sum();
         x.mul_(0.9);
         loss = loss + torch::tanh(torch::cos(linear(x * 2.0) + x)).sum();
         loss.backward();
         return gradients(*linear, {x.clone()});
       };
     },
     1, false, false, "memory of the host"},
    {"ComplexNumbersAndTheirConjugateViews",
     [] {
       const auto p = torch::randn({24, 24}, torch::dtype(torch::kComplexFloat)).requires_grad_(true);
       return [=] {
         const auto z = torch::matmul(p.conj(), torch::exp(p) * p.conj());
         torch::abs(z * torch::tanh(p) + torch::imag(p.conj())).sum().backward();
         return Tensors{p.grad()};
       };
     }},
    {"FourierTransforms",
     [] {
       nn::Linear linear(32, 32);
       const auto x = torch::randn({64, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto f = torch::fft::rfft(torch::tanh(linear(front->forward(x))));
         (torch::abs(f).sum() + torch::fft::irfft(f * torch::exp(-torch::abs(f))).pow(2).sum()).backward();
         return gradients(*linear);
       };
     }},
    {"LinearAlgebra",
     [] {
       nn::Linear linear(24, 24);
       const auto x = torch::randn({24, 24});
       return [=]() mutable {
         const auto h = torch::tanh(linear(x));
         const auto spd = h.matmul(h.t()) + torch::eye(24) * 3;
         const auto solved = torch::linalg_solve(spd, h);
         const auto [values, vectors] = torch::linalg_eigh(spd);
         (torch::exp(solved * 0.1).sum() + torch::linalg_cholesky(spd).sum() + torch::linalg_inv(spd).pow(2).sum() +
          values.log().sum() + torch::logdet(spd))
             .backward();
         return gradients(*linear);
       };
     }},
    {"IndexingWithListsThatHaveHoles",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16});
       auto front = layers(16);
       const auto rows = torch::randint(0, 32, {48}), columns = torch::randint(0, 16, {16});
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x)));
         const auto a = h.index({rows}), b = h.index({Slice(), columns}), c = h.index({Slice(None, None, 2), None, 3});
         (torch::exp(a).sum() + torch::exp(b * b).sum() + torch::sin(c).sum()).backward();
         return gradients(*linear);
       };
     }},
    {"GatherScatterAndIndexPut",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16});
       auto front = layers(16);
       const auto where = torch::randint(0, 16, {32, 16});
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x)));
         const auto c = torch::zeros({32, 16}).scatter_(1, where, h * h);
         auto e = torch::stack({c, h}).gather(2, where.expand({2, 32, 16}));
         e = e.masked_fill(e < 0, 0.1);
         e = e.index_put({torch::tensor({0}), torch::tensor({1})}, torch::ones({16}));
         const auto third = to_here(torch::tensor({3}));
         e = e * e.scatter_add(2, where.expand({2, 32, 16}), e).index_add(1, third, torch::ones({2, 1, 16}));
         torch::logsumexp(e, -1).sum().backward();
         return gradients(*linear);
       };
     }},
    {"SortAndTopk",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16});
       auto front = layers(16);
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x)));
         const auto sorted = std::get<0>(h.sort(1)), top = std::get<0>(h.topk(3)), middle = std::get<0>(h.median(1));
         (torch::cumsum(sorted * sorted, 1).sum() + (top * top).sum() + middle.pow(2).sum() +
          std::get<0>(h.max(1)).pow(2).sum() + std::get<0>(h.cummax(0)).exp().sum() + h.amax(0).pow(2).sum())
             .backward();
         return gradients(*linear);
       };
     }},
    {"SplitUnbindCatAndStack",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16});
       auto front = layers(16);
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x)));
         const auto parts = h.split(4, 1);
         const auto rows = (parts[0] * parts[1]).unbind(0);
         const auto joined = torch::cat({parts[3], parts[2], parts[1] * parts[0]}, 1);
         (torch::stack({rows[0] * rows[1], rows[5]}).sin().sum() + torch::exp(joined).sum() +
          torch::hstack({h, joined}).pow(2).sum())
             .backward();
         return gradients(*linear);
       };
     }},
    {"ShapesAreMovedAround",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16});
       auto front = layers(16);
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x))).view({4, 8, 16});
         const auto windows = h.unfold(1, 3, 2);
         (torch::exp(h.permute({2, 0, 1}).flip(0).roll(3, 1)).sum() + torch::sin(windows).sum() +
          torch::einsum("abc,abd->cd", {h, h}).tanh().sum() + torch::cdist(h, h + 1).sum() +
          h.repeat({1, 2, 1}).exp().sum() + h.tril().tan().sum() + torch::cumprod(h + 1.5, 2).log().sum())
             .backward();
         return gradients(*linear);
       };
     }},
    {"ExpandedTensorsHaveStridesOfZero",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({1, 16});
       auto front = layers(16);
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x))).expand({32, 16});
         (torch::exp(h) * h * torch::sigmoid(h.t()).t()).sum().backward();
         return gradients(*linear);
       };
     }},
    {"StridesThatOverlap",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16});
       auto front = layers(16);
       return [=]() mutable {
         const auto windows = torch::tanh(linear(front->forward(x))).as_strided({29, 16, 3}, {16, 1, 16}, 8);
         (torch::exp(windows) * windows).sum().backward();
         return gradients(*linear);
       };
     }},
    {"SmallViewOfALargeStorageIsSaved",
     [] {
       nn::Linear linear(16, 256);
       const auto x = torch::randn({64, 16});
       auto front = layers(16);
       return [=]() mutable {
         const auto view = torch::tanh(linear(front->forward(x))).index({Slice(3, 9), Slice(100, 140, 2)});
         (view * torch::sigmoid(view)).sum().backward();
         return gradients(*linear);
       };
     }},
    {"EmptyAndZeroDimensionalTensors",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({0, 16}), y = torch::randn({32, 16});
       return [=]() mutable {
         const auto none = torch::exp(torch::tanh(linear(x)));
         const auto one = torch::exp(linear(y).mean()) * torch::tensor(2.0);
         (none.sum() + torch::tanh(one) * one + torch::cat({none, torch::sigmoid(linear(y))}).pow(2).sum()).backward();
         return gradients(*linear);
       };
     }},
    {"InfinityAndNotANumber",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16});
       auto front = layers(16);
       return [=]() mutable {
         const auto h = linear(front->forward(x));
         (torch::log(h).nan_to_num(0.5) * torch::exp(h) + torch::sqrt(h) + torch::exp(torch::tanh(1 / (h - h))))
             .sum()
             .backward();
         return gradients(*linear);
       };
     }},
    {"OtherTypes",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16}), mask = torch::rand({32, 16}) < 0.5;
       auto front = layers(16);
       const auto counts = torch::randint(0, 5, {32, 16}, torch::kInt);
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x)));
         const auto a = torch::exp(h.to(torch::kDouble)) * counts, b = torch::sigmoid(h.to(torch::kBFloat16)) * mask;
         const auto c = torch::where(mask, h.to(torch::kHalf), torch::tanh(h).to(torch::kHalf));
         (a.sum().to(torch::kFloat) + b.sum().to(torch::kFloat) + (c * c).sum().to(torch::kFloat)).backward();
         return gradients(*linear);
       };
     }},
    {"SparseMatrices",
     [] {
       nn::Linear linear(16, 16);
       const auto x = torch::randn({32, 16});
       const auto sparse = (torch::randn({24, 32}) * (torch::rand({24, 32}) < 0.2)).to_sparse();
       return [=]() mutable {
         torch::exp(torch::tanh(at::_sparse_mm(sparse, torch::sigmoid(linear(x))))).sum().backward();
         return gradients(*linear);
       };
     },
     1, false, false, "the simulated one has no sparse tensors"},
});

}  // namespace
}  // namespace reprise::testing
