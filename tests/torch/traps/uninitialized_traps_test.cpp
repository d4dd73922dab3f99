// Operators that leave elements of their results uninitialized, or read uninitialized memory.
#include "torch/traps/trap.h"

namespace reprise::testing {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

// Fills memory with a number and frees it. A trap does so with another number before its replays than in forward.
void use_memory(float number) {
  Tensors all;
  for (const std::int64_t size : {64, 256, 1024, 4096, 16384, 65536}) {
    for (int i = 0; i < 4; ++i) all.push_back(torch::full({size}, number));
  }
}

// The loss on what an encoder says about each frame, and a decoder after it, so that CTC is evicted like the rest.
Work ctc_and_decoder(const std::vector<std::int64_t>& input_lengths, const std::vector<std::int64_t>& target_lengths) {
  auto front = layers(32);
  nn::Linear head(32, 6);
  auto decoder = layers(32);
  const auto batch = static_cast<std::int64_t>(input_lengths.size());
  const auto x = torch::randn({24, batch, 32});
  const auto targets = torch::randint(1, 6, {batch, 5}, torch::kLong);
  const auto inputs = torch::tensor(input_lengths), lengths = torch::tensor(target_lengths);
  return {[=]() mutable {
            use_memory(3);
            const auto hidden = front->forward(x);
            const auto loss = F::ctc_loss(torch::log_softmax(head(hidden), 2), targets, inputs, lengths,
                                          F::CTCLossFuncOptions().zero_infinity(true));
            use_memory(5);
            const auto decoded = decoder->forward(hidden * loss.tanh());
            (decoded.pow(2).mean() + loss).backward();
            return gradients(*front, gradients(*head, gradients(*decoder, {loss.detach()})));
          },
          {}};
}

const Traps uninitialized_traps({
    {"CtcWithLengthsThatDiffer",
     [] {
       return ctc_and_decoder({24, 17, 9, 12}, {5, 3, 1, 4});
     }},
    {"CtcWithoutTargets",
     [] {
       return ctc_and_decoder({24, 11, 7}, {5, 0, 2});
     }},
    {"CtcOfOneSequence", [] { return ctc_and_decoder({13}, {4}); }},
    {"RandomisedReluInEvaluation",
     [] {
       auto front = layers(32), back = layers(32);
       nn::RReLU relu;
       relu->eval();
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         use_memory(3);
         const auto y = relu(front->forward(x));
         use_memory(5);
         back->forward(y).pow(2).mean().backward();
         return gradients(*front, gradients(*back));
       };
     }},
    {"RandomisedReluWithNoiseOfItsOwn",
     [] {
       auto front = layers(32), back = layers(32);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         auto noise = torch::full({96, 32}, 0.25);
         auto mixed = noise * 2;  // the contents are used, before and after
         auto y = at::rrelu_with_noise(front->forward(x), mixed, 0.1, 0.3, false);
         y = back->forward(y * mixed.sin());
         y = at::rrelu_with_noise(y, noise, 0.1, 0.3, true) + at::rrelu_with_noise(y, noise, 0.1, 0.3, false);
         (y * noise.cos()).pow(2).mean().backward();
         return gradients(*front, gradients(*back, {noise, mixed}));
       };
     }},
    {"RandomisedReluInPlaceInEvaluation",
     [] {
       auto front = layers(32), back = layers(32);
       const auto x = torch::randn({96, 32});
       return [=]() mutable {
         use_memory(3);
         auto y = front->forward(x) * 2;
         torch::rrelu_(y, 0.1, 0.3, false);
         back->forward(y).pow(2).mean().backward();
         return gradients(*front, gradients(*back));
       };
     }},
    {"LeastSquaresOfEveryDriver",
     [] {
       auto front = layers(32), back = layers(8);
       const auto x = torch::randn({96, 32}), b = torch::randn({96, 8});
       return [=]() mutable {
         const auto a = front->forward(x) + 0.1 * x;
         at::Tensor loss = torch::zeros({});
         // Not gelsy: its pivots begin as uninitialized memory, so plain LibTorch gives other bits each time.
         for (const char* const driver : {"gels", "gelsd", "gelss"}) {
           use_memory(3);
           const auto solution = std::get<0>(torch::linalg_lstsq(a, b, std::nullopt, driver));
           loss = loss + back->forward(solution).pow(2).mean();
         }
         loss.backward();
         return gradients(*front, gradients(*back));
       };
     }},
    {"RecurrentLayersWithWorkspace",
     [] {
       nn::LSTM model(nn::LSTMOptions(16, 24).num_layers(2));
       nn::GRU other(nn::GRUOptions(24, 16));
       const auto x = torch::randn({12, 4, 16});
       return [=]() mutable {
         use_memory(3);
         const auto [y, state] = model->forward(x);
         use_memory(5);
         std::get<0>(other->forward(torch::tanh(y))).pow(2).mean().backward();
         return gradients(*model, gradients(*other));
       };
     }},
});

}  // namespace
}  // namespace reprise::testing
