#include "devices/device_training.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>
#include <random>

#include "accelerator/accelerator.h"

namespace reprise::testing {
namespace {

using at::Tensor;

// Parameters are drawn on the CPU, so that they are the same whatever the device's generator has done.
class Parameters {
 public:
  Tensor add(c10::IntArrayRef sizes, double scale) {
    all.push_back((torch::randn(sizes) * scale).to(device()).requires_grad_());
    return all.back();
  }
  std::vector<Tensor> all;
};

Tensor whole_numbers(std::int64_t below, c10::IntArrayRef sizes) {
  return torch::randint(below, sizes, at::kLong).to(device());
}

void record(Outcome& outcome, const Tensor& loss, const std::vector<Tensor>& parameters) {
  outcome.bits.push_back(loss.detach().cpu());
  for (const Tensor& parameter : parameters) outcome.bits.push_back(parameter.grad().detach().cpu());
}

void seed(std::uint64_t number) {
  torch::manual_seed(number);
  at::Generator generator = at::globalContext().defaultGenerator(device());
  generator.set_current_seed(number);
  generator.set_offset(0);
}

}  // namespace

c10::Device device() {
  accelerator::use(2);
  return {accelerator::type, 0};
}

// ---- what is trained -----------------------------------------------------------------------------------------------

Trained small_gpt() {
  constexpr std::int64_t words = 50, width = 64, heads = 4, batch = 16, length = 64;
  constexpr int blocks = 4;
  struct Block {
    Tensor qkv, proj, up, down, one, two;
  };
  Parameters parameters;
  const Tensor embedding = parameters.add({words, width}, 0.1), head = parameters.add({words, width}, 0.1);
  std::vector<Block> all;
  for (int i = 0; i < blocks; ++i) {
    all.push_back({parameters.add({3 * width, width}, 0.1), parameters.add({width, width}, 0.1),
                   parameters.add({4 * width, width}, 0.1), parameters.add({width, 4 * width}, 0.1),
                   parameters.add({width}, 1), parameters.add({width}, 1)});
  }
  const Tensor x = whole_numbers(words, {batch, length}), y = whole_numbers(words, {batch * length});
  const auto loss = [=] {
    Tensor h = torch::embedding(embedding, x);
    for (const Block& block : all) {
      const Tensor qkv = torch::linear(torch::layer_norm(h, {width}, block.one), block.qkv);
      const auto parts = qkv.view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
      const Tensor scores = (parts[0].matmul(parts[1].transpose(-2, -1)) / 4).softmax(-1);
      const Tensor mixed = torch::dropout(scores, 0.2, true).matmul(parts[2]).transpose(1, 2);
      h = h + torch::dropout(torch::linear(mixed.reshape({batch, length, width}), block.proj), 0.2, true);
      const Tensor up = torch::linear(torch::layer_norm(h, {width}, block.two), block.up);
      h = h + torch::linear(torch::gelu(up), block.down);
    }
    return torch::nn::functional::cross_entropy(torch::linear(h, head).view({-1, words}), y);
  };
  return {parameters.all, loss};
}

Trained two_streams() {
  Parameters parameters;
  const Tensor in = parameters.add({512, 64}, 0.1);
  const Tensor left = parameters.add({512, 512}, 0.05), left_out = parameters.add({64, 512}, 0.05);
  const Tensor right = parameters.add({512, 512}, 0.05), right_out = parameters.add({64, 512}, 0.05);
  const Tensor x = torch::randn({512, 64}).to(device()), y = torch::randn({512, 64}).to(device());
  const auto loss = [=] {
    const c10::impl::VirtualGuardImpl guard(accelerator::type);
    static const c10::Stream one = guard.getNewStream(device()), two = guard.getNewStream(device());
    const c10::Stream main = guard.getStream(device());
    const auto hand_over = [&](const Tensor& tensor, c10::Stream from, c10::Stream to) {
      c10::Event made(accelerator::type);
      made.record(from);
      made.block(to);
      guard.recordDataPtrOnStream(tensor.storage().data_ptr(), to);
    };
    const Tensor h = torch::gelu(torch::linear(x, in));
    hand_over(h, main, one);
    hand_over(h, main, two);
    Tensor a, b;
    {
      const c10::StreamGuard on(one);
      a = torch::linear(torch::tanh(torch::linear(h, left)), left_out);
    }
    {
      const c10::StreamGuard on(two);
      b = torch::linear(torch::gelu(torch::linear(h, right)), right_out);
    }
    hand_over(a, one, main);
    hand_over(b, two, main);
    return (a + b - y).pow(2).mean();
  };
  return {parameters.all, loss};
}

Trained random_program(unsigned seed) {
  constexpr std::int64_t rows = 32, width = 48;
  Parameters parameters;
  for (int i = 0; i < 3; ++i) parameters.add({width, width}, 0.2);
  const Tensor x = torch::randn({rows, width}).to(device());
  const auto loss = [=, weights = parameters.all] {
    std::mt19937 random(seed);
    const auto number = [&](std::size_t below) { return random() % below; };
    std::vector<Tensor> made{torch::linear(x, weights[0]), torch::tanh(torch::linear(x, weights[1]))};
    const auto any = [&]() -> Tensor& { return made[number(made.size())]; };
    for (int i = 0; i < 24; ++i) {
      const Tensor a = any(), b = any();
      switch (number(12)) {
        case 0: made.push_back(torch::linear(a, weights[number(weights.size())])); break;
        case 1: made.push_back(torch::gelu(a)); break;
        case 2: made.push_back(a * b); break;
        case 3: made.push_back(a + torch::sigmoid(b)); break;
        case 4: made.push_back(torch::dropout(a, 0.3, true)); break;
        case 5: made.push_back(a.softmax(-1)); break;
        case 6: made.push_back(a.t().matmul(b).matmul(weights[2]).narrow(0, 0, rows)); break;
        case 7: made.push_back((a + 1).mul_(b.sigmoid())); break;
        case 8: made.push_back(torch::layer_norm(a, {width})); break;
        case 9: made.push_back(a + torch::randn_like(b) * 0.1); break;
        case 10: made.push_back(torch::where(a > b, a, b.tanh())); break;
        case 11: made.push_back(a.view({rows / 2, 2 * width}).flip({0}).view({rows, width}) + b); break;
      }
      if (made.size() > 6) made.erase(made.begin() + static_cast<std::ptrdiff_t>(number(3)));
    }
    Tensor sum = torch::zeros({}, x.options());
    for (const Tensor& tensor : made) sum = sum + tensor.tanh().mean();
    for (const Tensor& weight : weights) sum = sum + weight.pow(2).mean();  // each has a gradient
    return sum;
  };
  return {parameters.all, loss};
}

// ---- training ------------------------------------------------------------------------------------------------------

Outcome train(const MakeTrained& make, Session* session, const Run& run) {
  seed(1);
  const Trained trained = make();
  seed(2);
  torch::optim::Adam adam(trained.parameters, torch::optim::AdamOptions(1e-3));
  Outcome outcome;
  accelerator::synchronize();
  accelerator::empty_cache();
  accelerator::mark_peak();
  for (int i = 0; i < run.steps; ++i) {
    if (run.before_step) run.before_step(i);
    Tensor loss;
    {
      std::optional<Step> step;
      if (session) step.emplace(session->step());
      loss = trained.loss();
      adam.zero_grad();
      loss.backward();
      adam.step();
    }
    outcome.peak = std::max(outcome.peak, accelerator::memory().live_peak);
    record(outcome, loss, trained.parameters);
    outcome.draws.push_back(at::globalContext().defaultGenerator(device()).get_offset());
    outcome.level = std::max(outcome.level, accelerator::memory().live);
    if (run.after_step) run.after_step(i);
  }
  accelerator::synchronize();
  return outcome;
}

double timed_step(const Trained& trained, Session* session) {
  const c10::Stream stream = c10::impl::VirtualGuardImpl(accelerator::type).getStream(device());
  c10::Event from(accelerator::type, c10::EventFlag::BACKEND_DEFAULT),
      to(accelerator::type, c10::EventFlag::BACKEND_DEFAULT);
  for (at::Tensor parameter : trained.parameters) parameter.mutable_grad().reset();
  accelerator::synchronize();
  from.record(stream);
  {
    std::optional<Step> step;
    if (session) step.emplace(session->step());
    trained.loss().backward();
  }
  to.record(stream);
  accelerator::synchronize();
  return 1000 * from.elapsedTime(to);
}

std::string difference(const Outcome& expected, const Outcome& seen) {
  if (expected.bits.size() != seen.bits.size()) return "another number of losses and gradients";
  for (std::size_t i = 0; i < expected.bits.size(); ++i) {
    const Tensor &one = expected.bits[i], &other = seen.bits[i];
    if (one.nbytes() != other.nbytes() ||
        std::memcmp(one.const_data_ptr(), other.const_data_ptr(), one.nbytes()) != 0) {
      return "loss or gradient " + std::to_string(i) + " of " + std::to_string(expected.bits.size());
    }
  }
  return expected.draws == seen.draws ? "" : "how much was drawn";
}

}  // namespace reprise::testing
