// Modes of LibTorch that change what operators do: autocast, inference, anomaly detection, training and evaluation.
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;

// As torch.autocast("cpu") in Python.
class Autocast {
 public:
  explicit Autocast(at::ScalarType type = at::kBFloat16, bool enabled = true)
      : enabled_(at::autocast::is_autocast_enabled(at::kCPU)), type_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_dtype(at::kCPU, type);
    at::autocast::set_autocast_enabled(at::kCPU, enabled);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, type_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool enabled_;
  at::ScalarType type_;
};

// As detect_anomaly() in Python, without its warnings: it takes a stack trace for each operator.
class DetectAnomaly {
 private:
  struct Quiet : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Quiet quiet_;
  c10::WarningUtils::WarningHandlerGuard guard_{&quiet_};
  torch::autograd::DetectAnomalyGuard detect_;
};

nn::Sequential normalized_model() {
  return nn::Sequential(nn::Linear(32, 64), nn::GELU(), nn::LayerNorm(nn::LayerNormOptions({64})), nn::Linear(64, 64),
                        nn::Tanh(), nn::Dropout(0.1), nn::Linear(64, 1));
}

const Traps mode_traps({
    {"AutocastToBfloat16",
     [] {
       auto model = normalized_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         at::Tensor loss;
         {
           Autocast autocast;
           loss = model->forward(front->forward(x)).to(torch::kFloat).pow(2).mean();
         }
         loss.backward();
         return gradients(*model, {loss.detach()});
       };
     },
     1, false, false, "autocast of the CPU"},
    {"AutocastKeepsCastWeightsForTheSecondUse",
     [] {
       auto model = normalized_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         Autocast autocast;
         const auto one = model->forward(front->forward(x)).to(torch::kFloat).pow(2).mean();
         const auto two = model->forward(front->forward(x) * 2).to(torch::kFloat).pow(2).mean();
         (one + two).backward();
         return gradients(*model);
       };
     },
     1, false, false, "autocast of the CPU"},
    {"AutocastIsSwitchedOffInside",
     [] {
       auto model = normalized_model();
       nn::Linear precise(32, 32);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         Autocast autocast(at::kHalf);
         at::Tensor h;
         {
           Autocast off(at::kBFloat16, false);
           h = torch::exp(torch::tanh(precise(front->forward(x))));
         }
         model->forward(h).to(torch::kFloat).pow(2).mean().backward();
         return gradients(*model, gradients(*precise));
       };
     },
     1, false, false, "autocast of the CPU"},
    {"ParametersInBfloat16",
     [] {
       auto model = normalized_model();
       model->to(torch::kBFloat16);
       const auto x = torch::randn({96, 32}).to(torch::kBFloat16);
       return [=]() mutable {
         model->forward(x).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"ParametersInDouble",
     [] {
       auto model = normalized_model();
       model->to(torch::kDouble);
       const auto x = torch::randn({96, 32}, torch::kDouble);
       return [=]() mutable {
         model->forward(x).pow(2).mean().backward();
         return gradients(*model);
       };
     }},
    {"InferenceModeInBetween",
     [] {
       auto model = normalized_model();
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         const auto loss = model->forward(x).pow(2).mean();
         at::Tensor scores;
         {
           c10::InferenceMode inference;
           scores = torch::softmax(model->forward(x), 0);
           scores.mul_(2);
         }
         (loss + torch::tanh(model->forward(x)).mean()).backward();
         return gradients(*model, {scores.clone()});
       };
     }},
    {"TensorOfInferenceModeIsSaved",
     [] {
       nn::Linear linear(32, 64);
       at::Tensor made;
       {
         c10::InferenceMode inference;
         made = torch::randn({96, 64});
       }
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         (torch::tanh(linear(front->forward(x))) * made).sum().backward();
         return gradients(*linear);
       };
     },
     1, true},
    {"TensorOfInferenceModeIsOnlyAdded",
     [] {
       nn::Linear linear(32, 64);
       at::Tensor made;
       {
         c10::InferenceMode inference;
         made = torch::randn({96, 64});
       }
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         torch::sigmoid(torch::tanh(linear(front->forward(x))) + made).sum().backward();
         return gradients(*linear);
       };
     }},
    {"AnomalyDetection",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         DetectAnomaly detect;
         torch::sigmoid(torch::tanh(linear(x))).sum().backward();
         return gradients(*linear);
       };
     },
     1, false, true},
    {"AnomalyDetectionFindsNotANumber",
     [] {
       nn::Linear linear(32, 64);
       const auto x = torch::zeros({96, 32});
       return [=]() mutable {
         DetectAnomaly detect;
         const auto h = linear(x) * 0;
         torch::sqrt(h * h).sum().backward();
         return gradients(*linear);
       };
     },
     1, true},
    {"GradientsAreSwitchedOffAndOnInOneForward",
     [] {
       nn::Linear one(32, 64), two(64, 64);
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         at::Tensor features;
         {
           at::NoGradGuard no_grad;
           features = torch::gelu(one(front->forward(x)));
           at::AutoGradMode again(true);
           features = features + torch::tanh(one(front->forward(x)));
         }
         torch::exp(torch::tanh(two(features))).sum().backward();
         return gradients(*one, gradients(*two));
       };
     }},
    {"TrainingAndEvaluationTakeTurns",
     [] {
       auto model = normalized_model();
       const auto x = torch::randn({96, 32});
       auto front = layers(32);
       return [=]() mutable {
         for (const bool train : {true, false, true}) {
           model->train(train);
           model->forward(front->forward(x)).pow(2).mean().backward();
         }
         return gradients(*model);
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
