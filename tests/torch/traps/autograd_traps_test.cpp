// What people do with autograd beside one backward of one loss.
#include "libtorch/rerun.h"
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Saves an input, an output and something in between.
struct SquaredTanh : torch::autograd::Function<SquaredTanh> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale) {
    const auto h = torch::tanh(x), y = h * h * scale;
    context->save_for_backward({h, scale, y});
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &h = saved[0], &scale = saved[1], &y = saved[2];
    return {gradients[0] * 2 * h * scale * (1 - h * h), (gradients[0] * h * h).sum(0) + 0 * y.sum()};
  }
};

// Writes into its input, and keeps a tensor where autograd does not see it.
struct ScaleInPlace : torch::autograd::Function<ScaleInPlace> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x, const at::Tensor& scale) {
    context->saved_data["scale"] = torch::exp(scale);
    x.mul_(torch::exp(scale));
    context->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * context->saved_data["scale"].toTensor(), at::Tensor()};
  }
};

// Nodes that backward makes are numbered by the thread that it runs on, and sums of gradients are in the order of these
// numbers: on a device, the order of a derivative of a derivative depends on that.
class BackwardOnThisThread {
 public:
  BackwardOnThisThread() { state().set_multithreading_enabled(false); }
  ~BackwardOnThisThread() { state().set_multithreading_enabled(before_); }
  BackwardOnThisThread(const BackwardOnThisThread&) = delete;
  BackwardOnThisThread& operator=(const BackwardOnThisThread&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }
  const bool before_ = state().get_multithreading_enabled();
};

const Traps autograd_traps({
    {"FunctionOfTheUser",
     [] {
       nn::Linear linear(32, 64);
       const auto scale = torch::randn({64}, torch::requires_grad()), x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         torch::tanh(SquaredTanh::apply(torch::gelu(linear(front->forward(x))), scale)).sum().backward();
         return gradients(*linear, {scale.grad()});
       };
     }},
    {"FunctionOfTheUserThatWritesIntoItsInput",
     [] {
       nn::Linear linear(32, 64);
       const auto scale = torch::randn({64}), x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = ScaleInPlace::apply(torch::gelu(linear(front->forward(x))), scale);
         (torch::sigmoid(h) * h).sum().backward();
         return gradients(*linear);
       };
     }},
    {"FunctionThatRunsTheForwardAgain",
     [] {
       nn::Linear one(32, 64), two(64, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto h = torch::gelu(one(front->forward(x)));
         h = tools::rerun([=](const at::Tensor& z) mutable { return torch::tanh(torch::dropout(two(z), 0.3, true)); },
                          h);
         (h * torch::sigmoid(h)).sum().backward();
         return gradients(*one, gradients(*two));
       };
     }},
    {"GraphIsRetainedForThreeBackwards",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto loss = model->forward(front->forward(x)).pow(2).mean();
         loss.backward({}, true);
         loss.backward({}, true);
         loss.backward();
         return gradients(*model);
       };
     }},
    {"BackwardTwiceWithoutRetaining",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto loss = model->forward(front->forward(x)).pow(2).mean();
         loss.backward();
         loss.backward();
         return gradients(*model);
       };
     },
     1, true},
    {"GradientsOfSomeInputs",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32}, torch::requires_grad());
       return [=]() mutable {
         const auto y = model->forward(torch::gelu(x));
         return torch::autograd::grad({y.sum()}, {x}, {}, false, false);
       };
     }},
    {"GradientsOfUnusedInputsAreUndefined",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32}, torch::requires_grad()),
                  unused = torch::randn({3}, torch::requires_grad());
       return [=]() mutable {
         const auto y = model->forward(x);
         return torch::autograd::grad({y.sum(), y.pow(2).sum()}, {unused, x}, {}, false, false, true);
       };
     }},
    {"GradientPenaltyNeedsASecondBackward",
     [] {
       nn::Sequential model(nn::Linear(32, 64), nn::Tanh(), nn::Linear(64, 64), nn::GELU(), nn::Linear(64, 1));
       const auto x = torch::randn({96, 32}, torch::requires_grad());
       return [=]() mutable {
         const auto y = model->forward(x);
         const auto slope = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
         ((slope.norm(2, 1) - 1).pow(2).mean() + y.mean()).backward();
         return gradients(*model, {x.grad()});
       };
     }},
    {"ThirdDerivative",
     [] {
       const auto x = torch::randn({256}, torch::requires_grad());
       return [=] {
         const BackwardOnThisThread here_too;
         auto y = torch::tanh(x * x) * torch::sigmoid(x);
         for (int i = 0; i < 2; ++i) y = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
         y.sum().backward();
         return Tensors{x.grad()};
       };
     }},
    {"InnerOptimisationIsPartOfTheGraph",
     [] {
       nn::Linear outer(16, 16);
       const auto x = torch::randn({64, 16});
       return [=]() mutable {
         at::Tensor weight = outer->weight;
         for (int i = 0; i < 3; ++i) {
           const auto inner = torch::tanh(x.matmul(weight)).pow(2).mean();
           weight = weight - 0.1 * torch::autograd::grad({inner}, {weight}, {}, true, true)[0];
         }
         torch::sin(x.matmul(weight)).sum().backward();
         return gradients(*outer);
       };
     }},
    {"SeveralLossesShareAPart",
     [] {
       nn::Linear trunk(32, 64), left(64, 8), right(64, 8);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = torch::gelu(torch::tanh(trunk(front->forward(x))));
         const auto one = left(h).pow(2).mean(), two = torch::exp(right(h)).mean();
         one.backward({}, true);
         two.backward();
         return gradients(*trunk, gradients(*left, gradients(*right)));
       };
     }},
    {"BackwardFromSeveralRootsAtOnce",
     [] {
       nn::Linear trunk(32, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = torch::tanh(trunk(front->forward(x)));
         torch::autograd::backward({torch::sin(h).sum(), h * h}, {at::Tensor(), torch::ones({96, 64})});
         return gradients(*trunk);
       };
     }},
    {"PartOfTheGraphIsDetached",
     [] {
       nn::Linear one(32, 64), two(64, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         const auto h = torch::gelu(one(front->forward(x)));
         const auto teacher = torch::softmax(two(h), 1).detach();
         (torch::log_softmax(torch::tanh(two(h)), 1) * teacher).sum().backward();
         return gradients(*one, gradients(*two));
       };
     }},
    {"FrozenLayersBetweenTrainedOnes",
     [] {
       auto model = small_model();
       for (auto& parameter : model[3]->parameters()) parameter.requires_grad_(false);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         model->forward(front->forward(x)).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"WeightsAreSharedByTwoLayers",
     [] {
       nn::Embedding embedding(40, 32);
       nn::Linear linear(32, 32);
       const auto ids = torch::randint(0, 40, {8, 12});
       return [=]() mutable {
         const auto h = torch::tanh(linear(embedding(ids)));
         torch::log_softmax(h.matmul(embedding->weight.t()), -1).pow(2).mean().backward();
         return gradients(*embedding, gradients(*linear));
       };
     }},
    {"EvaluationWithoutGradientsInBetween",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         auto loss = model->forward(front->forward(x)).pow(2).mean();
         at::Tensor scores;
         {
           at::NoGradGuard no_grad;
           model->eval();
           scores = model->forward(front->forward(x) * 2);
           model->train();
         }
         loss = loss + torch::tanh(model->forward(front->forward(x)) * scores).sum();
         loss.backward();
         return gradients(*model, {scores});
       };
     }},
    {"GraphsAreDroppedWithoutBackward",
     [] {
       auto model = small_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         for (int i = 0; i < 5; ++i) (void)model->forward(front->forward(x)).pow(2).mean();
         model->forward(front->forward(x)).sum().backward();
         return gradients(*model);
       };
     }},
    {"LossThatNeedsNoGradient",
     [] {
       auto model = small_model();
       for (auto& parameter : model->parameters()) parameter.requires_grad_(false);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         model->forward(x).sum().backward();
         return gradients(*model);
       };
     },
     1, true},
    {"ModelIsBuiltAndTrainedInPlace",
     [] {
       return [] {
         auto model = small_model();
         torch::optim::Adam adam(model->parameters(), 1e-2);
         for (int i = 0; i < 2; ++i) {
           adam.zero_grad();
           model->forward(torch::randn({96, 32})).pow(2).mean().backward();
           adam.step();
         }
         return parameters(*model);
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
