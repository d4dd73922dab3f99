// Trains a small causal transformer with dropout inside a byte budget.
//
//   gpt [SHARE OF THE PLAIN PEAK]
//
// The layers are LibTorch's own, unchanged: nothing has to be wrapped to be evicted. Masks of dropout are packed to
// bits or drawn again from the same state of the generator, so the training is the one without a budget.
#include <reprise/reprise.h>
#include <torch/torch.h>

#include "compare.h"

namespace {

constexpr int tokens = 64, length = 64, batch_size = 16, width = 64, heads = 4, layers = 4;

struct LanguageModelImpl : torch::nn::Module {
  torch::nn::Embedding token = nullptr, position = nullptr;
  torch::nn::TransformerEncoder body = nullptr;
  torch::nn::Linear head = nullptr;
  torch::Tensor mask, places;

  LanguageModelImpl() {
    token = register_module("token", torch::nn::Embedding(tokens, width));
    position = register_module("position", torch::nn::Embedding(length, width));
    const auto layer = torch::nn::TransformerEncoderLayerOptions(width, heads)
                           .dim_feedforward(4 * width)
                           .dropout(0.1)
                           .activation(torch::kGELU);
    body = register_module("body", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, layers)));
    head = register_module("head", torch::nn::Linear(width, tokens));
    // Nobody looks ahead: minus infinity where a token would see a later one.
    mask = register_buffer("mask", torch::nn::TransformerImpl::generate_square_subsequent_mask(length));
    places = register_buffer("places", torch::arange(length).unsqueeze(1));
  }

  // From length x batch tokens to length x batch x tokens scores.
  torch::Tensor forward(const torch::Tensor& text) { return head(body(token(text) + position(places), mask)); }
};
TORCH_MODULE(LanguageModel);

// A text that a model can learn: each token is one of two that may follow the one before.
torch::Tensor random_text() {
  torch::Tensor text = torch::empty({length + 1, batch_size}, torch::kLong);
  text[0] = torch::randint(tokens, {batch_size});
  for (int i = 1; i <= length; ++i) text[i] = (5 * text[i - 1] + torch::randint(1, 3, {batch_size})) % tokens;
  return text;
}

Outcome train(reprise::Session& session) {
  torch::manual_seed(1);
  LanguageModel model;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3).weight_decay(0.01));

  Outcome outcome;
  for (int i = 0; i < 8; ++i) {
    const torch::Tensor text = random_text();
    auto step = session.step();  // everything below runs inside the budget
    const torch::Tensor scores = model->forward(text.slice(0, 0, length));
    const torch::Tensor loss = torch::nn::functional::cross_entropy(scores.flatten(0, 1), text.slice(0, 1).flatten());
    optimizer.zero_grad();
    loss.backward();  // what was evicted is replayed here
    optimizer.step();
    outcome.losses.push_back(loss.item<float>());
  }
  outcome.add(*model);
  outcome.add(torch::rand({16}));  // the generator stands where it would stand without a budget
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  return compare(train, share_of_peak(argc, argv, 0.4));
}
