// Parameters, inputs and buffers that are overwritten while a graph needs them, and where plain LibTorch refuses.
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;

nn::Sequential two_layers() {
  return nn::Sequential(nn::Linear(32, 64), nn::Tanh(), nn::Linear(64, 1));
}

const Traps overwritten_traps({
    {"SavedParameterIsWritten",
     [] {
       auto model = two_layers();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto loss = model->forward(front->forward(x)).pow(2).mean();
         {
           at::NoGradGuard no_grad;
           model[2]->as<nn::Linear>()->weight.mul_(2);
         }
         loss.backward();
         return gradients(*model);
       };
     },
     1, true},
    {"SavedActivationIsWritten",
     [] {
       nn::Linear linear(32, 32);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = torch::tanh(linear(front->forward(x)));
         const auto loss = (h * h).sum();
         h.add_(1);
         loss.backward();
         return gradients(*linear);
       };
     },
     1, true},
    {"SavedInputIsRefilled",
     [] {
       nn::Linear linear(32, 32);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         const auto loss = torch::tanh(linear(x)).sum();
         x.copy_(torch::ones({96, 32}));
         loss.backward();
         return gradients(*linear);
       };
     },
     1, true},
    {"LeafThatNeedsAGradientIsWritten",
     [] {
       const auto leaf = torch::randn({8}, torch::requires_grad());
       return [=] {
         leaf.mul_(2);
         return Tensors{leaf};
       };
     },
     1, true},
    {"UnsavedParameterIsWritten",
     [] {
       auto model = two_layers();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto loss = model->forward(front->forward(x)).pow(2).mean();
         {
           at::NoGradGuard no_grad;
           model[0]->as<nn::Linear>()->bias.mul_(2);
         }
         loss.backward();
         return gradients(*model);
       };
     }},
    {"UnsavedInputIsRefilled",
     [] {
       const auto p = torch::randn({96, 32}, torch::requires_grad());
       const auto x = torch::randn({96, 32});
       return [=] {
         const auto loss = torch::tanh(torch::sigmoid(p + x)).sum();
         x.copy_(torch::ones({96, 32}));
         loss.backward();
         return Tensors{p.grad(), x};
       };
     }},
    {"UnsavedInputIsRefilledTwiceWithUsesInBetween",
     [] {
       const auto p = torch::randn({96, 32}, torch::requires_grad());
       const auto x = torch::randn({96, 32});
       return [=] {
         auto loss = torch::tanh(torch::sigmoid(p + x)).sum();
         x.fill_(0.5);
         loss = loss + torch::exp(torch::tanh(p - x)).sum();
         x.normal_();
         loss = loss + torch::tanh(torch::cos(p + x)).sum();
         x.zero_();
         loss.backward();
         return Tensors{p.grad(), x};
       };
     }},
    {"CopyOfAnInputIsWritten",
     [] {
       nn::Linear linear(32, 32);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         const auto h = torch::tanh(linear(x) + x.abs());
         const auto loss = (h * h).sum();
         (x * 1.0).add_(3);
         loss.backward();
         return gradients(*linear);
       };
     }},
    {"BufferIsUpdatedBeforeAndBetweenItsUses",
     [] {
       nn::Linear linear(32, 32);
       const auto u = torch::randn({32}), x = torch::randn({96, 32});
       return [=]() mutable {
         at::Tensor loss = torch::zeros({});
         for (int i = 0; i < 2; ++i) {
           {
             at::NoGradGuard no_grad;
             u.copy_(linear->weight.mv(u));
             u.div_(u.norm());
           }
           const auto h = torch::tanh(x.matmul(linear->weight) * u.clone());
           loss = loss + (torch::sigmoid(h) + u).sum();
         }
         loss.backward();
         return gradients(*linear, {u});
       };
     }},
    {"MovingAverageOfActivations",
     [] {
       nn::Linear linear(32, 64);
       const auto average = torch::zeros({64}), x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x)));
         {
           at::NoGradGuard no_grad;
           average.mul_(0.9).add_(h.mean(0), 0.1);
         }
         (torch::exp(h - average) * h).sum().backward();
         return gradients(*linear, {average});
       };
     }},
    {"ParameterIsWrittenThroughItsData",
     [] {
       auto model = two_layers();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         for (auto& parameter : model->parameters()) parameter.data().add_(parameter.grad(), -0.1);
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"SavedParameterIsWrittenThroughItsDataWhichLibTorchDoesNotNotice",
     [] {
       auto model = two_layers();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto loss = model->forward(front->forward(x)).pow(2).mean();
         for (auto& parameter : model->parameters()) parameter.data().mul_(1.25);
         loss.backward();
         return gradients(*model);
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
