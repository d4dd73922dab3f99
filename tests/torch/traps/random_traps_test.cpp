// Random numbers: replaying must draw the same ones again and leave every generator where it was.
#include <ATen/CPUGeneratorImpl.h>

#include "torch/here.h"
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

const Traps random_traps({
    {"NoiseAddedToActivations",
     [] {
       nn::Linear linear(32, 64), head(64, 1);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = linear(front->forward(x));
         h = h * (1 + 0.1 * torch::randn_like(h));
         h = torch::tanh(h) + torch::rand_like(h);
         head(torch::exp(h * 0.1)).pow(2).mean().backward();
         return gradients(*linear, gradients(*head));
       };
     }},
    {"ReparameterisedSamples",
     [] {
       nn::Linear mean(32, 16), deviation(32, 16), head(16, 32);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto sigma = torch::exp(deviation(front->forward(x)) * 0.5);
         const auto z = mean(front->forward(x)) + sigma * torch::randn({96, 16});
         ((head(z) - x).pow(2).mean() + sigma.mean()).backward();
         return gradients(*mean, gradients(*deviation, gradients(*head)));
       };
     }},
    {"FewNormalNumbersLeaveOneForNextTime",
     [] {
       nn::Linear linear(7, 7);
       const auto x = torch::randn({5, 7});
       auto front = layers(7);
       return [=]() mutable {
         const auto generator = at::detail::getDefaultCPUGenerator();
         auto h = torch::tanh(linear(front->forward(x)) * torch::randn({7}));
         h = h + at::normal(0.0, 1.0, {3}, generator).sum();
         h = torch::exp(h * torch::empty({7}, torch::kDouble).normal_().to(torch::kFloat));
         h.sum().backward();
         return gradients(*linear, {torch::randn({3})});
       };
     },
     1, false, false, "how the CPU's generator draws"},
    {"GeneratorOfTheUser",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       auto generator = generator_here(11);
       return [=]() mutable {
         const auto h = torch::tanh(linear(front->forward(x)) * torch::empty({96, 64}).bernoulli_(0.7, generator));
         const auto k = h * at::rand({96, 64}, generator);
         torch::exp(k * at::normal(h.detach(), 0.1, generator)).sum().backward();
         return gradients(*linear, {at::rand({4}, generator)});
       };
     }},
    {"GeneratorOfTheUserIsGoneBeforeBackward",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         at::Tensor h;
         {
           auto generator = generator_here(12);
           h = torch::tanh(linear(front->forward(x)) * torch::empty({96, 64}).bernoulli_(0.7, generator));
           h = torch::exp(h * at::rand({96, 64}, generator));
         }
         h.sum().backward();
         return gradients(*linear);
       };
     }},
    {"SeedIsSetBetweenForwardAndBackward",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::Dropout(0.3), nn::Tanh(), nn::Dropout(0.3), nn::Linear(64, 1));
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto loss = model->forward(front->forward(x)).pow(2).mean();
         torch::manual_seed(99);
         loss.backward();
         return gradients(*model, {torch::rand({4})});
       };
     }},
    {"MasksOfSeveralDistributions",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = torch::sigmoid(linear(front->forward(x)));
         h = h * torch::bernoulli(torch::full({96, 64}, 0.6));
         h = h * torch::bernoulli(h.detach()) + h * torch::empty({96, 64}).exponential_();
         h = h * torch::poisson(torch::full({96, 64}, 2.0)) + torch::empty({96, 64}).cauchy_().tanh();
         h = torch::tanh(h) * torch::empty({96, 64}).geometric_(0.5) * torch::empty({96, 64}).log_normal_().tanh();
         h = torch::exp(h * 0.01) * torch::empty({96, 64}).uniform_(-1, 1) * torch::empty({96, 64}).random_(0, 3);
         torch::sin(h).sum().backward();
         return gradients(*linear);
       };
     }},
    {"RandomIndices",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = torch::tanh(linear(front->forward(x)));
         h = torch::exp(h.index({torch::randperm(96)}));
         h = h * h.index_select(1, torch::randint(0, 64, {64}));
         const auto chosen = torch::multinomial(torch::softmax(h.detach(), 1), 8);
         torch::sin(h.gather(1, chosen)).sum().backward();
         return gradients(*linear);
       };
     }},
    {"GumbelSoftmax",
     [] {
       nn::Linear linear(32, 16), head(16, 4);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto soft = F::gumbel_softmax(linear(front->forward(x)), F::GumbelSoftmaxFuncOptions().tau(0.5));
         const auto hard = F::gumbel_softmax(linear(front->forward(x)), F::GumbelSoftmaxFuncOptions().hard(true));
         head(soft + hard).pow(2).mean().backward();
         return gradients(*linear, gradients(*head));
       };
     }},
    {"DropoutThatDrawsNothing",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::Dropout(0.0), nn::Tanh(), nn::Dropout(1.0), nn::Linear(64, 1));
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
