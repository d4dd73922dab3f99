// checkpoint(): a function evicts what it saves for backward, and gives the same bits.
#include "reprise/torch/checkpoint.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <source_location>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "reprise/torch/checkpoint_sequential.h"
#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/values/recordings.h"

namespace reprise {
using namespace internal;
namespace {

using testing::meter_here;
using testing::options_here;
using testing::to_here;

namespace nn = torch::nn;
using torch::Tensor;
using Tensors = std::vector<Tensor>;

Tensor leaf(std::vector<float> numbers) {
  return to_here(torch::tensor(numbers)).requires_grad_(true);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const Tensor x = a.contiguous().cpu(), y = b.contiguous().cpu();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

// Runs the same work with and without checkpoint(), from the same seed, and expects the same bits of everything it
// returns, and of the generator afterwards.
void expect_same(const std::function<Tensors(bool checkpointed)>& work) {
  Tensors results[2];
  Tensor generators[2];
  for (const bool checkpointed : {false, true}) {
    torch::manual_seed(7);
    results[checkpointed] = work(checkpointed);
    generators[checkpointed] = torch::rand({4});
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (std::size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(same_bits(results[0][i], results[1][i])) << i;
  EXPECT_TRUE(same_bits(generators[0], generators[1]));
  EXPECT_TRUE(Recordings::of_process().all().empty());
}

template <class Function, class... Inputs>
auto run(bool checkpointed, Function&& function, Inputs&&... inputs) {
  if (checkpointed) return checkpoint(function, std::forward<Inputs>(inputs)...);
  return function(std::forward<Inputs>(inputs)...);
}

// ---- known answers ----

TEST(Checkpoint, HasTheGradientsThatEverybodyCanCheck) {
  const Tensor three = leaf({3});
  checkpoint([](const Tensor& x) { return x.pow(2); }, three).backward();
  EXPECT_EQ(three.grad().item<float>(), 6);

  const Tensor two = leaf({2}), five = leaf({5});
  checkpoint([](const Tensor& x, const Tensor& y) { return x * y; }, two, five).backward();
  EXPECT_EQ(two.grad().item<float>(), 5);
  EXPECT_EQ(five.grad().item<float>(), 2);

  const auto square = [](const Tensor& x) { return x * x; };
  const Tensor chained = leaf({2});
  checkpoint(square, checkpoint(square, chained)).backward();
  EXPECT_EQ(chained.grad().item<float>(), 32);

  const Tensor reused = leaf({3});
  checkpoint([](const Tensor& x) { return (x + x) * x; }, reused).backward();
  EXPECT_EQ(reused.grad().item<float>(), 12);

  const Tensor several = leaf({2, 3});
  checkpoint(square, several).sum().backward();
  EXPECT_TRUE(several.grad().equal(to_here(torch::tensor({4.f, 6.f}))));
}

TEST(Checkpoint, AHookOfALeafFiresOnce) {
  const Tensor x = leaf({3});
  int fired = 0;
  x.register_hook([&](const Tensor& gradient) {
    ++fired;
    return gradient;
  });
  checkpoint([](const Tensor& y) { return y.exp().tanh(); }, x).backward();
  EXPECT_EQ(fired, 1);
}

// ---- memory ----

struct Block : nn::Module {
  Block()
      : a(register_module("a", nn::Linear(64, 256))),
        b(register_module("b", nn::Linear(256, 64))),
        d(register_module("d", nn::Dropout(0.3))) {}
  Tensor forward(const Tensor& x) { return x + d(b(torch::gelu(a(x)))); }
  nn::Linear a, b;
  nn::Dropout d;
};

TEST(Checkpoint, EvictsWhatIsSavedInsideAndFreesEverythingAfterBackward) {
  torch::manual_seed(1);
  std::vector<std::shared_ptr<Block>> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(std::make_shared<Block>());
  const Tensor x = torch::randn({512, 64});
  const auto saved_by = [&](bool checkpointed) {
    const Bytes before = meter_here().live();
    Tensor y = x;
    for (const auto& block : blocks)
      y = run(
          checkpointed, [&](const Tensor& z) { return block->forward(z); }, y);
    const Bytes held = meter_here().live() - before;
    y.sum().backward();
    return held;
  };
  const Bytes plain = saved_by(false);
  for (const auto& block : blocks) block->zero_grad(false);
  const Bytes before = meter_here().live();
  const Bytes evicted = saved_by(true);
  EXPECT_LT(evicted, plain / 3);
  EXPECT_EQ(meter_here().live(), before);
  EXPECT_TRUE(Recordings::of_process().all().empty());
}

TEST(Checkpoint, FreesEverythingWhenTheGraphIsDropped) {
  const Tensor x = torch::randn({64, 64}).requires_grad_(true);
  const Bytes before = meter_here().live();
  {
    const Tensor y = checkpoint([](const Tensor& z) { return z.exp().tanh().sum(); }, x);
    EXPECT_EQ(Recordings::of_process().all().size(), 1u);
  }
  EXPECT_EQ(meter_here().live(), before);
  EXPECT_TRUE(Recordings::of_process().all().empty());
}

TEST(Checkpoint, TheFunctionRunsOnceAndItsOperatorsAreFollowedTheNextTime) {
  int calls = 0;
  const Tensor x = torch::randn({16, 16}).requires_grad_(true);
  Tensor first;
  for (int i = 0; i < 3; ++i) {
    x.mutable_grad() = Tensor();
    checkpoint(
        [&](const Tensor& z) {
          ++calls;
          return z.exp().tanh().mul(2).sigmoid().sum();
        },
        x)
        .backward();
    if (i == 0) first = x.grad().clone();
    EXPECT_TRUE(same_bits(first, x.grad()));
  }
  EXPECT_EQ(calls, 3);
}

// ---- inputs and outputs ----

TEST(Checkpoint, TakesAndGivesWhateverTheFunctionDoes) {
  expect_same([](bool on) {
    const Tensor a = torch::randn({8, 8}).requires_grad_(true), b = torch::randn({8, 8}), undefined;
    Tensors results;
    // A vector in, a tuple out, numbers and text among the arguments.
    const auto [sum, product, name] = run(
        on,
        [](const Tensors& all, double factor, const std::string& text) {
          return std::tuple{(all[0].exp() + all[1]) * factor, all[0].tanh() * all[1].sigmoid(), text};
        },
        Tensors{a, b}, 0.5, std::string("name"));
    EXPECT_EQ(name, "name");
    // Optional and undefined tensors, the same tensor twice.
    const auto maybe = run(
        on,
        [](const Tensor& x, const Tensor& again, const std::optional<Tensor>& none, const Tensor& nothing) {
          EXPECT_FALSE(none.has_value());
          EXPECT_FALSE(nothing.defined());
          return std::optional<Tensor>(x.exp() * again.tanh());
        },
        a, a, std::optional<Tensor>(), undefined);
    // An output that is an input, one that depends on no input, one that is undefined.
    const Tensors mixed = run(
        on,
        [](const Tensor& x) {
          return Tensors{x, torch::ones({8, 8}), Tensor(), x.cos().exp()};
        },
        a);
    EXPECT_TRUE(mixed[0].is_same(a));
    (sum + product + *maybe + mixed[0] + mixed[1] + mixed[3]).sum().backward();
    results = {a.grad(), sum, product, *maybe, mixed[3]};
    return results;
  });
}

TEST(Checkpoint, NothingToDifferentiateLeavesNothingBehind) {
  const Tensor x = torch::randn({32, 32});
  const Bytes before = meter_here().live();
  {
    const Tensor y = checkpoint([](const Tensor& z) { return z.exp().tanh().sum(); }, x);
    EXPECT_FALSE(y.requires_grad());
    EXPECT_TRUE(Recordings::of_process().all().empty());
  }
  {
    const torch::NoGradGuard off;
    const Tensor z = x.clone().requires_grad_(true);
    const Tensor y = checkpoint([](const Tensor& w) { return w.exp().sum(); }, z);
    EXPECT_FALSE(y.requires_grad());
    EXPECT_TRUE(Recordings::of_process().all().empty());
  }
  EXPECT_EQ(meter_here().live(), before);
}

TEST(Checkpoint, CapturedParametersGetTheirGradientsAndFrozenOnesNone) {
  expect_same([](bool on) {
    Block block;
    block.b->weight.set_requires_grad(false);
    const Tensor x = torch::randn({16, 64});  // needs no gradient itself
    run(
        on, [&](const Tensor& z) { return block.forward(z).tanh(); }, x)
        .sum()
        .backward();
    EXPECT_FALSE(block.b->weight.grad().defined());
    return Tensors{block.a->weight.grad(), block.a->bias.grad(), block.b->bias.grad()};
  });
}

// ---- nesting and higher order ----

Tensor nested(bool on, int depth, const Tensor& x) {
  if (depth == 0) return x.tanh().exp().sin();
  return run(
      on, [&](const Tensor& y) { return nested(on, depth - 1, y.sigmoid()) * nested(on, depth - 1, y.cos()); }, x);
}

TEST(Checkpoint, NestsToAnyDepth) {
  expect_same([](bool on) {
    const Tensor x = torch::randn({16, 16}).requires_grad_(true);
    const Tensor y = nested(on, 5, x);
    y.sum().backward();
    return Tensors{y, x.grad()};
  });
}

TEST(Checkpoint, GivesSecondDerivatives) {
  expect_same([](bool on) {
    const Tensor x = torch::randn({16}).requires_grad_(true);
    const Tensor y = run(
        on, [](const Tensor& z) { return (z.exp() * z.tanh()).sin().sum(); }, x);
    const Tensor first = torch::autograd::grad({y}, {x}, {}, true, true)[0];
    const Tensor second = torch::autograd::grad({(first * first).sum()}, {x}, {}, true, true)[0];
    second.sum().backward();
    return Tensors{first, second, x.grad()};
  });
}

TEST(Checkpoint, BackwardTwiceWithARetainedGraphAndWithRespectToSomeInputs) {
  expect_same([](bool on) {
    const Tensor x = torch::randn({16}).requires_grad_(true), w = torch::randn({16}).requires_grad_(true);
    const Tensor y = run(
        on, [](const Tensor& a, const Tensor& b) { return (a.exp() * b.tanh()).sin().sum(); }, x, w);
    y.backward({}, true);
    const Tensor only = torch::autograd::grad({y}, {w}, {}, true)[0];
    y.backward();
    return Tensors{x.grad(), w.grad(), only};
  });
}

TEST(Checkpoint, BackwardTwiceWithoutARetainedGraphIsTheErrorOfLibTorch) {
  const Tensor x = torch::randn({16}).requires_grad_(true);
  const Tensor y = checkpoint([](const Tensor& z) { return z.exp().tanh().sum(); }, x);
  y.backward();
  EXPECT_THROW(y.backward(), c10::Error);
}

TEST(Checkpoint, BackwardMayRunInsideTheFunction) {
  expect_same([](bool on) {
    const Tensor x = torch::randn({16}).requires_grad_(true);
    const Tensor y = run(
        on,
        [](const Tensor& z) {
          const Tensor inner = z.detach().requires_grad_(true);
          const Tensor slope = torch::autograd::grad({inner.exp().tanh().sum()}, {inner})[0];
          return (z.sin() * slope).exp().sum();
        },
        x);
    y.backward();
    return Tensors{y, x.grad()};
  });
}

struct Cube : torch::autograd::Function<Cube> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x) {
    const Tensor square = checkpoint([](const Tensor& y) { return y * y; }, x);
    context->save_for_backward({x, square});
    return square * x;
  }
  static Tensors backward(torch::autograd::AutogradContext* context, Tensors gradients) {
    return {gradients[0] * 3 * context->get_saved_variables()[1]};
  }
};

TEST(Checkpoint, LivesInsideAFunctionOfTheUsersAndTheOtherWayRound) {
  expect_same([](bool on) {
    const Tensor x = torch::randn({16}).requires_grad_(true);
    const Tensor y = run(
        on, [](const Tensor& z) { return Cube::apply(z.tanh()).exp().sum(); }, x);
    y.backward();
    return Tensors{y, x.grad()};
  });
}

// ---- what happens inside ----

TEST(Checkpoint, RandomNumbersBatchStatisticsAndHooksHappenOnce) {
  expect_same([](bool on) {
    nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(3, 8, 3)), nn::BatchNorm2d(8), nn::ReLU(), nn::Dropout(0.4),
                       nn::Conv2d(nn::Conv2dOptions(8, 4, 3)), nn::BatchNorm2d(4));
    int fired = 0;
    for (auto& parameter : net->parameters()) parameter.register_hook([&fired](const Tensor&) { ++fired; });
    const Tensor x = torch::randn({4, 3, 12, 12}).requires_grad_(true);
    for (int i = 0; i < 3; ++i) {
      run(
          on, [&](const Tensor& z) { return torch::rrelu(net->forward(z), 0.1, 0.3, true); }, x)
          .sum()
          .backward();
    }
    EXPECT_EQ(fired, 3 * static_cast<int>(net->parameters().size()));
    Tensors results{x.grad()};
    for (const Tensor& parameter : net->parameters()) results.push_back(parameter.grad());
    for (const Tensor& buffer : net->buffers()) results.push_back(buffer);
    return results;
  });
}

TEST(Checkpoint, InPlaceOperatorsAndViewsBehaveAsWithoutIt) {
  expect_same([](bool on) {
    const Tensor x = torch::randn({8, 8}).requires_grad_(true);
    const Tensor y = run(
        on,
        [](const Tensor& z) {
          Tensor w = z.exp().clone();
          w.slice(0, 0, 4).mul_(2);
          w.add_(1).relu_();
          const Tensor view = w.view({64}).slice(0, 3, 40);
          return view.log().mul(w.t().reshape({64}).slice(0, 0, 37)).tanh();
        },
        x);
    y.sum().backward();
    return Tensors{y, x.grad()};
  });
}

TEST(Checkpoint, AnOutputMayBeWrittenAfterwards) {
  expect_same([](bool on) {
    const Tensor x = torch::randn({32}).requires_grad_(true);
    // Nobody saves the sum, but the sine is recomputed from it.
    Tensor y, s;
    std::tie(y, s) = run(
        on,
        [](const Tensor& z) {
          const Tensor sum = z + 1;
          return std::tuple{sum, (sum * 2).sin().exp()};
        },
        x);
    y.mul_(3);
    (y.sum() + s.sum()).backward();
    return Tensors{y, x.grad()};
  });
}

TEST(Checkpoint, AutocastIsAsWithoutIt) {
  REPRISE_ONLY_ON_CPU("autocast of the CPU");
  expect_same([](bool on) {
    nn::Linear linear(32, 32);
    const Tensor x = torch::randn({8, 32}).requires_grad_(true);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const Tensor y = run(
        on, [&](const Tensor& z) { return torch::matmul(linear(z).relu(), z.t()).exp(); }, x);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    y.to(torch::kFloat).sum().backward();
    return Tensors{y, x.grad(), linear->weight.grad()};
  });
}

// ---- errors ----

TEST(Checkpoint, AFunctionThatThrowsLeavesEverythingAsItWas) {
  const Tensor x = torch::randn({16, 16}).requires_grad_(true);
  const Bytes before = meter_here().live();
  struct Thrown {};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(checkpoint(
                     [](const Tensor& z) {
                       const Tensor y = z.exp().tanh();
                       if (y.defined()) throw Thrown();
                       return y;
                     },
                     x),
                 Thrown);
    EXPECT_EQ(meter_here().live(), before);
    EXPECT_TRUE(Recordings::of_process().all().empty());
  }
  checkpoint([](const Tensor& z) { return z.exp().tanh().sum(); }, x).backward();
  EXPECT_TRUE(x.grad().defined());
}

TEST(Checkpoint, ASavedValueWrittenInPlaceIsTheErrorOfLibTorch) {
  const Tensor x = torch::randn({16}).requires_grad_(true);
  const Tensor w = torch::randn({16});
  const Tensor y = checkpoint([&](const Tensor& z) { return (z * w).sum(); }, x);
  w.add_(1);
  try {
    y.backward();
    ADD_FAILURE();
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("modified by an inplace operation"), std::string::npos) << error.what();
  }
}

TEST(Checkpoint, AnInputOfARecipeWrittenInPlaceIsAnErrorThatNamesTheOperator) {
  const Tensor x = torch::randn({16}).requires_grad_(true);
  const Tensor shift = torch::randn({16});
  const Tensor y = checkpoint([&](const Tensor& z) { return (z + shift).exp().sum(); }, x);
  shift.add_(1);
  try {
    y.backward();
    ADD_FAILURE();
  } catch (const ChangedInputError& error) {
    EXPECT_NE(std::string(error.what()).find("add"), std::string::npos) << error.what();
  }
}

// ---- sequences ----

TEST(BalancedSegments, MakeTheLargestAsSmallAsPossible) {
  using Ends = std::vector<std::size_t>;
  EXPECT_EQ(balanced_segments({1, 1, 1, 1}, 2), (Ends{2, 4}));
  EXPECT_EQ(balanced_segments({8, 1, 1, 1}, 2), (Ends{1, 4}));
  EXPECT_EQ(balanced_segments({1, 1, 1, 8}, 2), (Ends{3, 4}));
  EXPECT_EQ(balanced_segments({3, 3, 3, 3, 3}, 5), (Ends{1, 2, 3, 4, 5}));
  EXPECT_EQ(balanced_segments({0, 0, 0}, 1), (Ends{3}));
  EXPECT_EQ(balanced_segments({0, 0, 0, 0}, 2).size(), 2u);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<double> weights(1 + random() % 7);
    for (double& weight : weights) weight = static_cast<double>(random() % 9);
    const int segments = 1 + static_cast<int>(random() % weights.size());
    const auto largest = [&](const Ends& ends) {
      double most = 0;
      std::size_t first = 0;
      for (const std::size_t end : ends) {
        most = std::max(most, std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(first),
                                              weights.begin() + static_cast<std::ptrdiff_t>(end), 0.0));
        first = end;
      }
      return most;
    };
    const Ends found = balanced_segments(weights, segments);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(segments));
    ASSERT_EQ(found.back(), weights.size());
    ASSERT_TRUE(std::is_sorted(found.begin(), found.end()));
    double best = 1e9;
    for (unsigned cuts = 0; cuts < 1u << (weights.size() - 1); ++cuts) {
      Ends ends;
      for (std::size_t k = 1; k < weights.size(); ++k) {
        if (cuts >> (k - 1) & 1) ends.push_back(k);
      }
      ends.push_back(weights.size());
      if (ends.size() == found.size()) best = std::min(best, largest(ends));
    }
    EXPECT_EQ(largest(found), best);
  }
}

TEST(Checkpoint, CallsAreToldApartByTheirPlaceAndTheirTypes) {
  const auto one = std::source_location::current(), other = std::source_location::current();
  const int type = 0, other_type = 0;
  EXPECT_EQ(&internal::site_at(one, &type), &internal::site_at(one, &type));
  EXPECT_NE(&internal::site_at(one, &type), &internal::site_at(other, &type));
  EXPECT_NE(&internal::site_at(one, &type), &internal::site_at(one, &other_type));
}

TEST(Checkpoint, TakesFunctionsOfAnyKindAndAnyNumberOfInputs) {
  const Tensor x = torch::randn({8}).requires_grad_(true);
  const auto gradient = [&](const Tensor& y) {
    y.sum().backward();
    const Tensor found = x.grad().clone();
    x.mutable_grad() = Tensor();
    return found;
  };
  const std::function<Tensor(const Tensor&)> wave = [](const Tensor& t) { return t.sin().exp(); };
  Tensor (*const pointer)(const Tensor&) = [](const Tensor& t) { return t.tanh().exp(); };
  const auto six = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e,
                      const Tensor& f) { return (a * b + c.exp() * d + e * f).tanh(); };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bits(gradient(checkpoint(wave, x)), gradient(wave(x))));
    EXPECT_TRUE(same_bits(gradient(checkpoint(pointer, x)), gradient(pointer(x))));
    EXPECT_TRUE(same_bits(gradient(checkpoint(six, x, x, x, x, x, x)), gradient(six(x, x, x, x, x, x))));
  }
}

TEST(CheckpointSequential, OfASequentialHasTheBitsOfThePlainRunForEveryNumberOfSegments) {
  torch::manual_seed(2);
  nn::Sequential model(nn::Linear(32, 256), nn::GELU(), nn::Linear(256, 32), nn::Dropout(0.2), nn::Tanh(),
                       nn::Linear(32, 8));
  for (int segments = 1; segments <= 6; ++segments) {
    for (const Balance balance : {Balance::bytes, Balance::time}) {
      expect_same([&](bool on) {
        model->zero_grad();
        const Tensor x = torch::randn({64, 32}).requires_grad_(true);
        const Tensor y = on ? checkpoint_sequential(model, segments, x, balance) : model->forward(x);
        y.pow(2).sum().backward();
        Tensors results{y, x.grad()};
        for (const Tensor& parameter : model->parameters()) results.push_back(parameter.grad().clone());
        return results;
      });
    }
  }
}

TEST(CheckpointSequential, SegmentsAreBalancedByWhatTheyEvict) {
  // Of four functions the first evicts most by far.
  std::vector<std::function<Tensor(Tensor)>> functions{
      [](const Tensor& x) {
        return x.repeat({64, 1}).exp().tanh().sigmoid().slice(0, 0, 32);
      },
      [](const Tensor& x) { return x.exp().neg(); }, [](const Tensor& x) { return x.tanh() * 2; },
      [](const Tensor& x) { return x.sin() + 1; }};
  const Tensor x = torch::randn({32, 32}).requires_grad_(true);
  const auto place = std::source_location::current();
  for (int i = 0; i < 2; ++i) {
    checkpoint_sequential(functions, 2, x, Balance::bytes, place).sum().backward();
    EXPECT_EQ(internal::CheckpointedSequence::at(place, 4).ends(2, Balance::bytes), (std::vector<std::size_t>{1, 4}));
  }
  const Tensor first = x.grad().clone();
  x.mutable_grad() = Tensor();
  for (int i = 0; i < 2; ++i) functions[3](functions[2](functions[1](functions[0](x)))).sum().backward();
  EXPECT_TRUE(same_bits(first, x.grad()));
}

TEST(CheckpointSequential, ANumberOfSegmentsThatCannotBeIsAnErrorThatSaysSo) {
  nn::Sequential model(nn::Linear(4, 4), nn::Tanh());
  const Tensor x = torch::randn({2, 4});
  for (const int segments : {0, -1, 3}) {
    try {
      (void)checkpoint_sequential(model, segments, x);
      ADD_FAILURE();
    } catch (const BadOption& error) {
      EXPECT_NE(std::string(error.what()).find("segments is " + std::to_string(segments)), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("modules, 2"), std::string::npos);
    }
  }
}

// ---- sessions ----

TEST(Checkpoint, WorksInsideASessionWithAndWithoutABudget) {
  torch::manual_seed(3);
  std::vector<std::shared_ptr<Block>> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(std::make_shared<Block>());
  const Tensor x = torch::randn({256, 64});
  const auto step = [&](bool on) {
    torch::manual_seed(5);
    for (const auto& block : blocks) block->zero_grad();
    Tensor y = x;
    for (const auto& block : blocks)
      y = run(
          on, [&](const Tensor& z) { return block->forward(z); }, y);
    y.pow(2).sum().backward();
    Tensors gradients;
    for (const auto& block : blocks) {
      for (const Tensor& parameter : block->parameters()) gradients.push_back(parameter.grad().clone());
    }
    return gradients;
  };
  const Tensors plain = step(false);
  Bytes peak = 0;
  {
    Session measuring(options_here());
    const auto open = measuring.step();
    (void)step(false);
    peak = measuring.summary().peak_last_step();
  }
  for (const Bytes budget : {no_limit, peak, peak * 8 / 10, peak * 7 / 10}) {
    SessionOptions options = options_here();
    options.budget = budget;
    options.planning_time = std::chrono::milliseconds(200);
    Session session(options);
    for (int i = 0; i < 4; ++i) {
      const auto open = session.step();
      const Tensors gradients = step(true);
      for (std::size_t k = 0; k < plain.size(); ++k) ASSERT_TRUE(same_bits(plain[k], gradients[k])) << budget;
      if (i == 1) session.wait_for_plan();
    }
    if (budget != no_limit) EXPECT_LE(session.summary().peak(), budget);
  }
  EXPECT_TRUE(Recordings::of_process().all().empty());
}

}  // namespace
}  // namespace reprise
