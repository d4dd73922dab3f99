// Hooks and errors: the user's code runs once, and what it throws comes out.
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;

const Traps hook_traps({
    {"HooksOfTensorsFireOnce",
     [] {
       nn::Linear one(32, 64), two(64, 1);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         int fired = 0;
         const auto h = one(front->forward(x));
         h.register_hook([&](const at::Tensor& gradient) {
           ++fired;
           return gradient * 2;
         });
         two(torch::tanh(h)).pow(2).sum().backward();
         return gradients(*one, gradients(*two, {torch::full({1}, fired)}));
       };
     }},
    {"GradientsOfActivationsAreRetained",
     [] {
       nn::Linear one(32, 64), two(64, 1);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = torch::tanh(one(front->forward(x)));
         h.retain_grad();
         two(torch::gelu(h)).pow(2).sum().backward();
         return gradients(*one, gradients(*two, {h.grad()}));
       };
     }},
    {"ForwardOfTheUserRunsOnce",
     [] {
       nn::Linear one(32, 64);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         int calls = 0;
         const auto layer = [&](const at::Tensor& z) {
           ++calls;
           return torch::gelu(torch::tanh(one(z)));
         };
         layer(x).pow(2).sum().backward();
         return gradients(*one, {torch::full({1}, calls)});
       };
     }},
    {"HookRunsOperatorsOfItsOwn",
     [] {
       nn::Linear one(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         at::Tensor seen;
         const auto h = torch::tanh(one(front->forward(x)));
         h.register_hook([&](const at::Tensor& gradient) {
           at::AutoGradMode with_grad(true);
           const auto probe = torch::randn({96, 64}, torch::requires_grad());
           (torch::sigmoid(torch::tanh(probe)) * gradient).sum().backward();
           seen = probe.grad();
         });
         (h * torch::sigmoid(h)).sum().backward();
         return gradients(*one, {seen});
       };
     }},
    {"HookOfAParameterClipsItsGradient",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::Tanh(), nn::Linear(64, 1));
       for (auto& parameter : model->parameters()) {
         parameter.register_hook([](const at::Tensor& gradient) { return gradient.clamp(-0.01, 0.01); });
       }
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"HookThrows",
     [] {
       nn::Linear one(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = torch::tanh(one(front->forward(x)));
         h.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("the hook gave up"); });
         torch::sin(torch::gelu(h)).sum().backward();
         return gradients(*one);
       };
     },
     1, true},
    {"UserThrowsBetweenForwardAndBackward",
     [] {
       nn::Linear one(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable -> Tensors {
         const auto loss = torch::sin(torch::tanh(one(front->forward(x)))).sum();
         if (loss.defined()) throw std::runtime_error("the user gave up");
         return gradients(*one);
       };
     },
     1, true},
    {"OperatorThrows",
     [] {
       nn::Linear one(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = torch::tanh(one(front->forward(x)));
         torch::matmul(h, torch::randn({3, 3})).sum().backward();
         return gradients(*one);
       };
     },
     1, true},
    {"OperatorThatWritesInPlaceThrowsAndTheUserGoesOn",
     [] {
       nn::Linear one(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = torch::tanh(one(front->forward(x)));
         auto k = h * 2;
         try {
           k.add_(torch::ones({3, 3}));
         } catch (const c10::Error&) {
         }
         try {
           (void)k.index({torch::full({1}, 1000, torch::kLong)});
         } catch (const c10::Error&) {
         }
         (torch::exp(k) * h).sum().backward();
         return gradients(*one);
       };
     },
     1, false, false, "an index out of range is found by a kernel, later"},
    {"BackwardThrowsInAFunctionOfTheUserAndTheGraphIsUsedAgain",
     [] {
       nn::Linear one(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         bool angry = true;
         const auto h = torch::tanh(one(front->forward(x)));
         h.register_hook([&](const at::Tensor& gradient) {
           if (angry) throw std::runtime_error("not now");
           return gradient;
         });
         const auto loss = torch::sin(torch::gelu(h)).sum();
         try {
           loss.backward({}, true);
         } catch (const std::runtime_error&) {
         }
         angry = false;
         loss.backward();
         return gradients(*one);
       };
     }},
    {"HookOfBackwardWritesABufferThatForwardReads",
     [] {
       auto front = layers(32), back = layers(32);
       const auto x = torch::randn({96, 32});
       const auto seen = torch::zeros({32});
       return [=]() mutable {
         const auto h = front->forward(x) + seen;
         h.register_hook([=](const at::Tensor& gradient) {
           const torch::NoGradGuard no_grad;
           seen.mul_(0.9).add_(gradient.abs().mean(0));
         });
         const auto k = torch::exp(torch::tanh(h * seen) + seen);
         back->forward(torch::tanh(k)).pow(2).sum().backward();
         return gradients(*front, gradients(*back, {seen}));
       };
     },
     4},
    {"HookOfBackwardWritesABufferThroughData",
     [] {
       auto front = layers(32), back = layers(32);
       const auto x = torch::randn({96, 32});
       const auto seen = torch::ones({32});
       return [=]() mutable {
         const auto h = torch::tanh(front->forward(x) * seen);
         const auto k = torch::exp(torch::sin(h + seen) * seen);
         k.register_hook([=](const at::Tensor& gradient) { seen.data().mul_(0.9).add_(gradient.abs().mean(0)); });
         back->forward(torch::tanh(k)).pow(2).sum().backward();
         return gradients(*front, gradients(*back, {seen}));
       };
     },
     4},
    {"BackwardOfAFunctionWritesABufferThatForwardReads",
     [] {
       struct Counted : torch::autograd::Function<Counted> {
         static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                                   const at::Tensor& seen) {
           context->saved_data["seen"] = seen;
           return x + seen;
         }
         static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                        const torch::autograd::variable_list& gradients) {
           context->saved_data["seen"].toTensor().add_(gradients[0].mean(0));
           return {gradients[0], at::Tensor()};
         }
       };
       auto front = layers(32), back = layers(32);
       const auto x = torch::randn({96, 32});
       const auto seen = torch::zeros({32});
       return [=]() mutable {
         const auto h = Counted::apply(torch::sin(front->forward(x) + seen), seen);
         back->forward(torch::tanh(h) * torch::cos(seen)).pow(2).sum().backward();
         return gradients(*front, gradients(*back, {seen}));
       };
     },
     4},
    {"HookOfBackwardOverwritesABufferOfLists",
     [] {
       auto front = layers(32), back = layers(32);
       const auto x = torch::randn({96, 32});
       const std::vector<at::Tensor> seen{torch::ones({32}), torch::zeros({32})};
       return [=]() mutable {
         const auto h = torch::tanh(torch::sin(front->forward(x) + seen[0]) + seen[1]);
         h.register_hook([=](const at::Tensor& gradient) {
           const torch::NoGradGuard no_grad;
           at::_foreach_add_(seen, gradient.mean().item<double>());
         });
         back->forward(torch::sin(h)).pow(2).sum().backward();
         return gradients(*front, gradients(*back, {seen[0], seen[1]}));
       };
     },
     4},
});

}  // namespace
}  // namespace reprise::testing
