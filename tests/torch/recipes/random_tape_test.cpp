// Random numbers of operators: what they drew is known exactly, whoever else draws.
#include "torch/recipes/random_tape.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "reprise/torch/session.h"
#include "torch/memory/arbiter.h"

namespace reprise {
using namespace internal;
namespace {

using at::Tensor;

at::CPUGeneratorImpl& default_generator() {
  return *at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
}

std::uint64_t state_of_default() {
  const std::scoped_lock lock(default_generator().mutex_);
  return libtorch::fingerprint(libtorch::state_of(default_generator()));
}

class Draws : public ::testing::Test {
 protected:
  Draws() { draws::prepare(); }
};

// A thread that draws from the default generator all the time.
class Drawing {
 public:
  Drawing()
      : thread_([this] {
          do {
            (void)at::rand({16});
            drawn_ = true;
          } while (!done_);
        }) {
    while (!drawn_) std::this_thread::yield();
  }
  ~Drawing() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_ = false, drawn_ = false;
  std::thread thread_;
};

struct Way {
  std::string name;
  std::function<Tensor()> draw;
};

const Tensor& halves() {
  static const auto& all = *new Tensor(at::full({40, 50}, 0.5));
  return all;
}

std::vector<Way> ways_to_draw() {
  return {
      {"rand",
       [] {
         return at::rand({40, 50});
       }},
      {"randn", [] { return at::randn({41}); }},
      {"few normal numbers", [] { return at::randn({3}); }},
      {"normal numbers in double", [] { return at::randn({3}, at::kDouble); }},
      {"randn_like", [] { return at::randn_like(halves()); }},
      {"rand_like", [] { return at::rand_like(halves()); }},
      {"randint", [] { return at::randint(0, 1000, {40}); }},
      {"randint_like", [] { return at::randint_like(halves(), 9); }},
      {"randperm", [] { return at::randperm(100); }},
      {"dropout", [] { return at::dropout(halves(), 0.3, true); }},
      {"native_dropout", [] { return std::get<1>(at::native_dropout(halves(), 0.3, true)); }},
      {"alpha_dropout", [] { return at::alpha_dropout(halves(), 0.3, true); }},
      {"feature_dropout", [] { return at::feature_dropout(halves(), 0.3, true); }},
      {"bernoulli", [] { return at::bernoulli(halves()); }},
      {"bernoulli_",
       [] {
         return at::empty({40, 50}).bernoulli_(0.3);
       }},
      {"normal of tensors", [] { return at::normal(halves(), halves()); }},
      {"uniform_", [] { return at::empty({40}).uniform_(-1, 1); }},
      {"exponential_", [] { return at::empty({40}).exponential_(); }},
      {"log_normal_", [] { return at::empty({40}).log_normal_(); }},
      {"cauchy_", [] { return at::empty({40}).cauchy_(); }},
      {"geometric_", [] { return at::empty({40}).geometric_(0.4); }},
      {"random_", [] { return at::empty({40}).random_(3, 70); }},
      {"multinomial", [] { return at::multinomial(halves(), 4); }},
      {"multinomial with replacement", [] { return at::multinomial(halves(), 70, true); }},
      {"poisson", [] { return at::poisson(halves() * 8); }},
      {"binomial", [] { return at::binomial(halves() * 20, halves()); }},
      {"gamma", [] { return at::_standard_gamma(halves()); }},
      {"dirichlet", [] { return at::_sample_dirichlet(halves()); }},
      {"rrelu", [] { return at::rrelu(-halves(), 0.1, 0.3, true); }},
      {"generator of the user's",
       [] {
         auto own = at::detail::createCPUGenerator(4);
         return at::rand({40}, own) + at::empty({40}).normal_(0, 1, own);
       }},
  };
}

TEST_F(Draws, TheProgramsStreamIsWhatItWouldBe) {
  for (const Way& way : ways_to_draw()) {
    SCOPED_TRACE(way.name);
    at::manual_seed(5);
    const Tensor expected = way.draw();
    const std::uint64_t end = state_of_default();
    at::manual_seed(5);
    const draws::Recorder recorder;
    EXPECT_TRUE(at::equal(way.draw(), expected));
    EXPECT_EQ(state_of_default(), end);
    EXPECT_FALSE(recorder.tape().empty());
    EXPECT_FALSE(recorder.incomplete());
  }
}

TEST_F(Draws, ATapePlaysTheSameNumbersAgainBesideAThreadThatDraws) {
  const Drawing other;
  for (const Way& way : ways_to_draw()) {
    SCOPED_TRACE(way.name);
    for (int i = 0; i < 20; ++i) {
      draws::Tape tape;
      Tensor expected;
      {
        draws::Recorder recorder;
        expected = way.draw();
        tape = recorder.take_tape();
      }
      const draws::Player player(tape);
      ASSERT_TRUE(at::equal(way.draw(), expected));
      EXPECT_NO_THROW(player.finish());
    }
  }
}

TEST_F(Draws, PlayingTouchesNoGeneratorOfTheProgram) {
  for (const Way& way : ways_to_draw()) {
    SCOPED_TRACE(way.name);
    draws::Tape tape;
    {
      draws::Recorder recorder;
      (void)way.draw();
      tape = recorder.take_tape();
    }
    const std::uint64_t before = state_of_default();
    const draws::Player player(tape);
    (void)way.draw();
    EXPECT_EQ(state_of_default(), before);
  }
}

TEST_F(Draws, WhatGoesAnotherWayThanItsTapeIsAnError) {
  draws::Tape tape;
  {
    draws::Recorder recorder;
    (void)at::rand({40});
    tape = recorder.take_tape();
  }
  EXPECT_THROW(
      {
        const draws::Player player(tape);
        (void)at::rand({41});
      },
      draws::OffTheTape);
  EXPECT_THROW(
      {
        const draws::Player player(tape);
        (void)at::rand({40});
        (void)at::rand({40});
      },
      draws::OffTheTape);
  const draws::Player player(tape);
  EXPECT_THROW(player.finish(), draws::OffTheTape);
}

TEST_F(Draws, AnErrorInAnOperatorLeavesTheStreamWhereItWouldBe) {
  at::manual_seed(6);
  EXPECT_ANY_THROW((void)at::multinomial(at::full({3}, -1.0), 2));
  const std::uint64_t end = state_of_default();
  at::manual_seed(6);
  const draws::Recorder recorder;
  EXPECT_ANY_THROW((void)at::multinomial(at::full({3}, -1.0), 2));
  EXPECT_EQ(state_of_default(), end);
}

// ---- in a session ----

// Noise that was evicted: x is ones, so the gradient is the noise itself, bit for bit.
void expect_noise_again(Session& session, int steps, const std::function<Tensor(const Tensor&)>& with_noise) {
  int wrong = 0;
  for (int i = 0; i < steps; ++i) {
    std::vector<Tensor> leaves, expected;
    const auto step = session.step();
    Tensor loss = at::zeros({});
    for (int k = 0; k < 4; ++k) {
      leaves.push_back(at::ones({64, 64}).requires_grad_(true));
      const Tensor noisy = with_noise(leaves.back());
      expected.push_back(noisy.detach().clone());
      loss = loss + noisy.sum();
    }
    loss.backward();
    for (std::size_t k = 0; k < leaves.size(); ++k) wrong += at::equal(leaves[k].grad(), expected[k]) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

SessionOptions evicting(Verify verify) {
  SessionOptions options;
  options.evict_everything = true;
  options.verify = verify;
  options.planning_time = std::chrono::milliseconds(0);
  return options;
}

TEST_F(Draws, NoiseThatWasEvictedComesBackBesideAThreadThatDraws) {
  const Drawing other;
  Session session(evicting(Verify::never));
  expect_noise_again(session, 100, [](const Tensor& x) { return x * at::randn_like(x); });
  expect_noise_again(session, 100, [](const Tensor& x) { return at::dropout(x, 0.3, true); });
  expect_noise_again(session, 100, [](const Tensor& x) { return x * at::rand({64, 64}); });
}

TEST_F(Draws, TwoThreadsThatTrainWithDropoutDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([] {
      Session session(evicting(Verify::never));
      expect_noise_again(session, 100, [](const Tensor& x) { return at::dropout(x, 0.3, true); });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Draws, ASamplerThatAllocatesUnderTheGeneratorsLockDoesNotBlockTraining) {
  std::atomic<bool> done = false;
  std::atomic<int> drawn = 0;
  SessionOptions options;
  options.budget = 3 << 20;
  options.planning_time = std::chrono::milliseconds(0);
  Session session(options);
  std::thread sampler([&] {
    const Tensor weights = at::rand({2000});
    while (!done) {
      try {
        (void)at::multinomial(weights, 64, true);
      } catch (const BudgetError&) {
      }
      ++drawn;
    }
  });
  const Tensor weight = (at::randn({64, 64}) * 0.1).requires_grad_(true);
  std::vector<Tensor> noise;
  for (int i = 0; i < 8; ++i) noise.push_back(at::randn({512, 64}));
  int steps = 0;
  for (int i = 0; i < 150 || drawn < 150; ++i) {
    try {
      const auto step = session.step();
      Tensor h = at::randn({512, 64});
      for (Tensor& one : noise) {
        h = at::dropout(at::tanh(at::matmul(h, weight) + 0.1 * one), 0.1, true);
        one.normal_();
      }
      h.pow(2).mean().backward();
      ++steps;
    } catch (const BudgetError&) {
    }
  }
  done = true;
  sampler.join();
  EXPECT_GT(steps, 0);
}

// A kernel that asks the default generator by itself, which the dispatcher does not see.
Tensor draw_behind_the_dispatcher(const Tensor& x) {
  const std::scoped_lock lock(default_generator().mutex_);
  return x * static_cast<double>(default_generator().random() % 1000);
}
TORCH_LIBRARY(reprise_draws_test, library) {
  library.def("noise(Tensor x) -> Tensor", {at::Tag::nondeterministic_seeded});
  library.impl("noise", c10::DispatchKey::CPU, draw_behind_the_dispatcher);
}

TEST_F(Draws, WhatAKernelDrawsInItsOwnWayIsKept) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("reprise_draws_test::noise", "").typed<Tensor(const Tensor&)>();
  const Drawing other;
  Session session(evicting(Verify::always));
  for (int i = 0; i < 3; ++i) {
    const auto step = session.step();
    const Tensor x = at::ones({64, 64}).requires_grad_(true);
    Tensor noise;
    {
      const at::NoGradGuard no_grad;
      noise = op.call(at::ones({64, 64}));
    }
    const Tensor noisy = x * op.call(at::ones({64, 64})) * noise;
    const Tensor expected = noisy.detach().clone();
    noisy.sum().backward();
    EXPECT_TRUE(at::equal(x.grad(), expected));
  }
  const auto kept = session.summary().kept;
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept[0].op, "reprise_draws_test::noise");
  EXPECT_NE(kept[0].why.find("draws"), std::string::npos) << kept[0].why;
}

// ---- the order of locks ----

TEST(Arbiter, DeletersOfTheUserRunWhenItIsFree) {
  bool held = false;
  int deleted = 0;
  Session session(evicting(Verify::never));
  for (int i = 0; i < 3; ++i) {
    std::vector<float> memory(64 * 64, 0.5f);
    const auto step = session.step();
    const Tensor weight = at::ones({64, 64}).requires_grad_(true);
    Tensor x = at::from_blob(memory.data(), {64, 64}, [&](void*) {
      held |= Arbiter::held();
      ++deleted;
    });
    const Tensor loss = at::tanh(at::matmul(at::exp(x), weight)).sum();
    x = Tensor();
    loss.backward();
  }
  EXPECT_EQ(deleted, 3);
  EXPECT_FALSE(held);
}

TEST(Arbiter, ThePolicyIsAskedWhenItIsFree) {
  int asked = 0;
  bool held = false;
  SessionOptions options;
  options.budget = 64 << 20;
  options.policy = [&](const PolicyOperator&) {
    held |= Arbiter::held();
    ++asked;
    return Choice::automatic;
  };
  Session session(options);
  const auto step = session.step();
  at::tanh(at::ones({8}).requires_grad_(true)).sum().backward();
  EXPECT_GT(asked, 0);
  EXPECT_FALSE(held);
}

TEST(Arbiter, WhatIsDiscardedUnderItIsFreedAfterIt) {
  bool freed = false;
  std::vector<float> memory(4);
  c10::Storage storage = at::from_blob(memory.data(), {4}, [&](void*) { freed = true; }).storage();
  {
    const Arbiter outer;
    {
      const Arbiter inner;
      Arbiter::discard(std::move(storage));
    }
    EXPECT_FALSE(freed);
  }
  EXPECT_TRUE(freed);
}

}  // namespace
}  // namespace reprise
