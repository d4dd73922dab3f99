// Training loops over several steps: optimizers, accumulation, adversaries, graphs that outlive their step.
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

struct BadBatch {};

namespace nn = torch::nn;
namespace optim = torch::optim;

at::Tensor loss_of(nn::Sequential& model, const at::Tensor& x) {
  return model->forward(x).pow(2).mean();
}

// A loop around an optimizer, as in every tutorial. The optimizer is shared by the copies of the work.
template <class Optimizer, class Options>
Work train_with(Options options) {
  auto model = small_model();
  const auto optimizer = std::make_shared<Optimizer>(model->parameters(), std::move(options));
  return [=]() mutable {
    optimizer->zero_grad();
    loss_of(model, torch::randn({192, 32})).backward();
    optimizer->step();
    return parameters(*model);
  };
}

const Traps optimizers({
    {"Sgd", [] { return train_with<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9).nesterov(true)); }, 4},
    {"Adam", [] { return train_with<optim::Adam>(optim::AdamOptions(1e-2).amsgrad(true)); }, 4},
    {"AdamWithDecay", [] { return train_with<optim::AdamW>(optim::AdamWOptions(1e-2)); }, 4},
    {"RmsPropagation", [] { return train_with<optim::RMSprop>(optim::RMSpropOptions(1e-2).momentum(0.9)); }, 4},
    {"AdaptiveGradient", [] { return train_with<optim::Adagrad>(optim::AdagradOptions(1e-2)); }, 4},
    {"LimitedMemoryBfgs",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::Tanh(), nn::Linear(64, 1));
       const auto x = torch::randn({192, 32}), y = torch::randn({192, 1});
       const auto optimizer = std::make_shared<optim::LBFGS>(
           model->parameters(), optim::LBFGSOptions(0.5).max_iter(4).history_size(3).line_search_fn("strong_wolfe"));
       return [=]() mutable {
         optimizer->step([&] {
           optimizer->zero_grad();
           const auto loss = (model->forward(x) - y).pow(2).mean();
           loss.backward();
           return loss;
         });
         return parameters(*model);
       };
     },
     3},
});

const Traps loops({
    {"GradientsAccumulateOverSteps",
     [] {
       auto model = small_model();
       const auto sgd = std::make_shared<optim::SGD>(model->parameters(), 0.1);
       int step = 0;
       return [=]() mutable {
         loss_of(model, torch::randn({192, 32})).backward();
         if (++step % 2 == 0) {
           nn::utils::clip_grad_norm_(model->parameters(), 0.5);
           sgd->step();
           sgd->zero_grad();
         }
         return parameters(*model, gradients(*model));
       };
     },
     5},
    {"TwoAdversariesWithOptimizersOfTheirOwn",
     [] {
       nn::Sequential maker(nn::Linear(8, 64), nn::BatchNorm1d(64), nn::ReLU(), nn::Linear(64, 32));
       nn::Sequential judge(nn::Linear(32, 64), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
                            nn::Dropout(0.3), nn::Linear(64, 1));
       const auto maker_adam = std::make_shared<optim::Adam>(maker->parameters(), 1e-3);
       const auto judge_adam = std::make_shared<optim::Adam>(judge->parameters(), 1e-3);
       return [=]() mutable {
         judge_adam->zero_grad();
         torch::binary_cross_entropy_with_logits(judge->forward(torch::randn({192, 32})), torch::ones({192, 1}))
             .backward();
         const auto fake = maker->forward(torch::randn({192, 8}));
         torch::binary_cross_entropy_with_logits(judge->forward(fake.detach()), torch::zeros({192, 1})).backward();
         judge_adam->step();
         maker_adam->zero_grad();
         torch::binary_cross_entropy_with_logits(judge->forward(fake), torch::ones({192, 1})).backward();
         maker_adam->step();
         return parameters(*maker, parameters(*judge));
       };
     },
     3},
    {"StateIsCarriedFromStepToStep",
     [] {
       nn::LSTMCell cell(16, 32);
       const auto sgd = std::make_shared<optim::SGD>(cell->parameters(), 0.1);
       auto h = torch::zeros({16, 32}), c = torch::zeros({16, 32});
       return [=]() mutable {
         sgd->zero_grad();
         for (int i = 0; i < 5; ++i) std::tie(h, c) = cell(torch::randn({16, 16}), std::make_tuple(h, c));
         h.pow(2).sum().backward();
         h = h.detach();
         c = c.detach();
         sgd->step();
         return parameters(*cell, {h, c});
       };
     },
     4},
    {"BackwardIsInTheNextStep",
     [] {
       auto model = small_model();
       at::Tensor pending;
       Work work([=]() mutable {
         if (pending.defined()) pending.backward();
         pending = loss_of(model, torch::randn({192, 32}));
         return gradients(*model, {pending.detach()});
       });
       work.keeps_graph = true;
       return work;
     },
     4},
    {"BackwardIsOutsideOfAnyStep",
     [] {
       auto model = small_model();
       const auto loss = std::make_shared<at::Tensor>();
       return Work(
           [=]() mutable {
             *loss = loss_of(model, torch::randn({192, 32}));
             return Tensors{loss->detach()};
           },
           [=] {
             loss->backward();
             loss->reset();
             return gradients(*model);
           });
     },
     3},
    {"GraphOfAStepIsDroppedOutsideOfIt",
     [] {
       auto model = small_model();
       const auto loss = std::make_shared<at::Tensor>();
       return Work(
           [=]() mutable {
             *loss = loss_of(model, torch::randn({192, 32}));
             loss_of(model, torch::randn({192, 32})).backward();
             return gradients(*model, {loss->detach()});
           },
           [=] {
             loss->reset();
             return gradients(*model);
           });
     },
     3},
    {"StepsWithoutBackward",
     [] {
       auto model = small_model();
       return [=]() mutable {
         at::NoGradGuard no_grad;
         return Tensors{model->forward(torch::randn({192, 32}))};
       };
     },
     3},
    {"GraphsThatNobodyWants",
     [] {
       auto model = small_model();
       return [=]() mutable { return Tensors{loss_of(model, torch::randn({192, 32})).detach()}; };
     },
     3},
    {"StepsInWhichNothingHappens", [] { return [] { return Tensors{}; }; }, 3},
    {"ShapesChange",
     [] {
       auto model = small_model();
       int step = 0;
       return [=]() mutable {
         static constexpr int sizes[] = {96, 64, 96, 1, 128, 64};
         loss_of(model, torch::randn({sizes[step++ % 6], 32})).backward();
         return gradients(*model);
       };
     },
     6},
    {"TrainingAndEvaluationSteps",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::BatchNorm1d(64), nn::Dropout(0.2), nn::ReLU(), nn::Linear(64, 1));
       int step = 0;
       return [=]() mutable {
         model->train(step++ % 2 == 0);
         loss_of(model, torch::randn({192, 32})).backward();
         return gradients(*model);
       };
     },
     4},
    {"BranchesDependOnTheData",
     [] {
       auto model = small_model();
       nn::Linear extra(64, 64);
       return [=]() mutable {
         const auto x = torch::randn({192, 32});
         auto h = torch::tanh(model[0]->as<nn::Linear>()->forward(x));
         while (h.sum().item<float>() > 0) h = torch::sin(extra(h) - 0.5);
         if (h[0][0].item<float>() < 0) h = torch::gelu(h);
         const auto some = h.index({h.select(1, 0) < 0});
         torch::exp(some).mean().backward();
         return gradients(*model, gradients(*extra));
       };
     },
     5},
    {"LayersAreFrozenAndThawed",
     [] {
       auto model = small_model();
       int step = 0;
       return [=]() mutable {
         for (auto& parameter : model[0]->parameters()) parameter.requires_grad_(step % 2 == 0);
         ++step;
         model->zero_grad();
         loss_of(model, torch::randn({192, 32})).backward();
         return gradients(*model);
       };
     },
     4},
    {"AverageOfTheWeights",
     [] {
       auto model = small_model(), average = small_model();
       const auto sgd = std::make_shared<optim::SGD>(model->parameters(), 0.1);
       return [=]() mutable {
         sgd->zero_grad();
         loss_of(model, torch::randn({192, 32})).backward();
         sgd->step();
         at::NoGradGuard no_grad;
         for (std::size_t i = 0; i < model->parameters().size(); ++i)
           average->parameters()[i].mul_(0.9).add_(model->parameters()[i], 0.1);
         return parameters(*model, parameters(*average));
       };
     },
     3},
    {"UserThrowsInEverySecondStepAndGoesOn",
     [] {
       auto model = small_model();
       int step = 0;
       return [=]() mutable {
         try {
           const auto loss = loss_of(model, torch::randn({192, 32}));
           if (step++ % 2 == 0) throw BadBatch();
           loss.backward();
         } catch (const BadBatch&) {
         }
         return gradients(*model);
       };
     },
     4},
});

}  // namespace
}  // namespace reprise::testing
