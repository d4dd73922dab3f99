// Operators that write in place, into all of an activation or a part of it.
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;

const Traps in_place_traps({
    {"ReluInPlace",
     [] {
       const nn::ReLUOptions in_place(true);
       nn::Sequential model(nn::Linear(32, 64), nn::ReLU(in_place), nn::Linear(64, 64), nn::ReLU(in_place),
                            nn::Linear(64, 1));
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"SeveralWritesIntoOneStorage",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = linear(front->forward(x));
         h.add_(1).mul_(2).sigmoid_();
         const auto y = torch::exp(h);
         auto k = h * y;
         k.mul_(2).tanh_();
         (torch::cos(k) * 3).sum().backward();
         return gradients(*linear);
       };
     }},
    {"WritesIntoViews",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = linear(front->forward(x));
         h.slice(1, 0, 10).add_(h.slice(1, 20, 30).detach() * 2);
         h.select(0, 3).mul_(0.5);
         const auto y = torch::sigmoid(h);
         y.narrow(0, 0, 4).clone().mul_(y.narrow(0, 4, 4));
         (torch::tanh(y * h) * h).sum().backward();
         return gradients(*linear);
       };
     }},
    {"WritesIntoDisjointPartsOfWhatWasSaved",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto parts = linear(front->forward(x)).unsafe_chunk(4, 1);  // as the gates of an LSTM cell
         auto a = parts[0].sigmoid_(), b = parts[1].tanh_(), c = parts[2].relu_(), d = parts[3].exp_();
         (a * b + c * d).sum().backward();
         return gradients(*linear);
       };
     }},
    {"MultiplicationInPlaceSavesACopy",
     [] {
       nn::Linear linear(32, 32);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto a = linear(front->forward(x));
         const auto b = torch::tanh(linear(a));
         a = a * 1.5;
         a.mul_(b);
         torch::exp(a * 0.1).sum().backward();
         return gradients(*linear);
       };
     }},
    {"NoiseOfRandomisedRelu",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = torch::tanh(at::rrelu(linear(front->forward(x)), 0.1, 0.4, true));
         at::rrelu(h * 2, 0.1, 0.4, true).sum().backward();
         return gradients(*linear);
       };
     }},
    {"NoiseOfRandomisedReluInPlace",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = linear(front->forward(x));
         at::rrelu_(h, 0.1, 0.4, true);
         torch::tanh(h).sum().backward();
         return gradients(*linear);
       };
     }},
    {"DetachedTensorSharesTheStorage",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = linear(front->forward(x));
         const auto shared = h.detach();
         shared.clamp_(-0.5, 0.5);
         (torch::tanh(h) * shared).sum().backward();
         return gradients(*linear, {shared});
       };
     }},
    {"BatchIsCollectedRowByRow",
     [] {
       nn::Linear linear(32, 32);
       const auto rows = torch::randn({96, 32});
       return [=]() mutable {
         const auto batch = torch::empty({96, 32});
         for (int i = 0; i < 96; ++i) batch[i].copy_(rows[95 - i]);
         auto grown = torch::zeros({96, 64});
         grown.slice(1, 0, 32).copy_(torch::tanh(linear(batch)));
         grown.slice(1, 32, 64).copy_(torch::sigmoid(linear(batch * 2)));
         (grown * grown).sum().backward();
         return gradients(*linear);
       };
     }},
    {"WritesByIndexAndMask",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       const auto rows = torch::randint(0, 96, {10}), mask = torch::rand({96, 64}) < 0.2;
       return [=]() mutable {
         auto h = linear(front->forward(x));
         h.masked_fill_(mask, 0.25);
         h.index_fill_(0, rows, -1);
         h.index_put_({rows}, torch::ones({64}));
         h.scatter_add_(1, torch::zeros({96, 1}, torch::kLong), torch::ones({96, 1}));
         torch::exp(torch::tanh(h)).sum().backward();
         return gradients(*linear);
       };
     }},
    {"OperatorsWithOutputArguments",
     [] {
       nn::Linear linear(32, 32);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         auto out = torch::empty({96, 32}), more = torch::empty({0});
         torch::mul_out(out, x, x);
         torch::exp_out(more, x * 0.1);
         const auto h = torch::tanh(linear(more) + out);
         torch::add_out(out, x, x);
         (torch::sigmoid(h) * 2).sum().backward();
         return gradients(*linear, {out, more});
       };
     }},
    {"StorageIsResizedAndReplaced",
     [] {
       nn::Linear linear(32, 32);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         auto scratch = torch::empty({0});
         scratch.resize_({96, 32}).copy_(x);
         const auto h = torch::tanh(linear(scratch * 2) + scratch.sin());
         auto other = torch::ones({4});
         other.set_(torch::randn({96, 32}));
         (torch::sigmoid(h) * torch::exp(other * 0.5)).sum().backward();
         return gradients(*linear, {other});
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
