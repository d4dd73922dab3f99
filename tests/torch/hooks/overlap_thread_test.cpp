// Threads that meet inside of Reprise: one records while another replays, presses, plans, frees or asks.
//
// These are the programs that the thread sanitizer sees (preset `thread`), with the whole of Reprise built for it and
// LibTorch as it is; thread.supp says what that means. So they are small, use tensors alone, and leave nothing to
// chance: whatever they compute is compared with what one thread computes without a session.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "reprise/torch/session.h"
#include "torch/here.h"

namespace reprise {
using namespace internal;
namespace {

using testing::counted_here;
using testing::generator_here;
using testing::meter_here;
using testing::options_here;

using at::Tensor;

// Layers that share one weight, on numbers of their own.
class Tower {
 public:
  Tower(std::uint64_t seed, int layers) : layers_(layers) {
    auto generator = generator_here(seed);
    x_ = at::randn({48, 24}, generator);
    weight_ = (at::randn({24, 24}, generator) * 0.2).requires_grad_(true);
    loss().backward();
    expected_ = weight_.grad();
    drop_gradient();
    const Bytes level = meter_here().live();
    meter_here().mark_peak();
    loss().backward();
    needs_ = meter_here().peak() - level;
    drop_gradient();
  }

  [[nodiscard]] Tensor loss() const {
    Tensor h = x_;
    for (int i = 0; i < layers_; ++i) h = at::tanh(at::matmul(h, weight_) + h);
    return h.sum();
  }
  void drop_gradient() { weight_.mutable_grad().reset(); }
  // The gradient is the plain one; it is dropped.
  void expect_right() {
    ASSERT_TRUE(weight_.grad().defined());
    EXPECT_TRUE(at::equal(weight_.grad(), expected_));
    drop_gradient();
  }
  void step(Session& session) {
    {
      const Step open = session.step();
      loss().backward();
    }
    expect_right();
  }
  // What a plain step needs beyond what is there.
  [[nodiscard]] Bytes needs() const { return needs_; }

 private:
  const int layers_;
  Tensor x_, weight_, expected_;
  Bytes needs_ = 0;
};

// A thread that does the same over and over, from the first time on until this is destroyed.
class Beside {
 public:
  explicit Beside(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          do {
            work();
            started_ = true;
          } while (!ending_);
        }) {
    while (!started_) std::this_thread::yield();
  }
  ~Beside() {
    ending_ = true;
    thread_.join();
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

 private:
  std::atomic<bool> started_{false}, ending_{false};
  std::thread thread_;
};

SessionOptions evicting() {
  SessionOptions options = options_here();
  options.planning_time = std::chrono::milliseconds(0);
  options.evict_everything = true;
  return options;
}

SessionOptions with_budget(Bytes room, int planning = 0) {
  SessionOptions options = options_here();
  options.budget = meter_here().live() + room;
  options.planning_time = std::chrono::milliseconds(planning);
  return options;
}

Bytes share(Bytes bytes, double of_it) {
  return static_cast<Bytes>(of_it * static_cast<double>(bytes));
}

// ---- one recording, several threads ----

TEST(OverlapThread, ForwardOfTheNextPartGoesOnWhileAnotherThreadRunsBackwardOfTheLast) {
  Tower one(1, 12), two(2, 80);
  for (int i = 0; i < 5; ++i) {
    Session session(evicting());
    {
      const Step step = session.step();
      Tensor first = one.loss();
      std::thread backward([&] { first.backward(); });
      const Tensor second = two.loss();
      backward.join();
      second.backward();
    }
    one.expect_right();
    two.expect_right();
  }
}

TEST(OverlapThread, UnderABudgetForwardOfTheNextPartPressesWhileAnotherThreadReplaysTheLast) {
  Tower one(1, 12), two(2, 40);
  const Bytes room = share(one.needs() + two.needs(), 0.6);
  for (int i = 0; i < 5; ++i) {
    Session session(with_budget(room));
    {
      const Step step = session.step();
      Tensor first = one.loss();
      std::thread backward([&] { first.backward(); });
      const Tensor second = two.loss();
      backward.join();
      second.backward();
    }
    one.expect_right();
    two.expect_right();
  }
}

TEST(OverlapThread, TwoThreadsRunBackwardOfTwoPartsOfOneStep) {
  Tower one(1, 16), two(2, 16);
  Session session(evicting());
  for (int i = 0; i < 5; ++i) {
    {
      const Step step = session.step();
      Tensor first = one.loss(), second = two.loss();
      std::thread backward([&] { first.backward(); });
      second.backward();
      backward.join();
    }
    one.expect_right();
    two.expect_right();
  }
}

TEST(OverlapThread, ForwardIsHereAndBackwardThereUnderABudgetWithPlans) {
  Tower tower(3, 16);
  Session session(with_budget(share(tower.needs(), 0.7), 20));
  for (int i = 0; i < 6; ++i) {
    {
      const Step step = session.step();
      Tensor loss = tower.loss();
      std::thread([&] { loss.backward(); }).join();
    }
    tower.expect_right();
    if (i == 2) session.wait_for_plan();
  }
}

// ---- several recordings ----

TEST(OverlapThread, TwoThreadsTrainWithSessionsOfTheirOwn) {
  Tower one(1, 16), two(2, 16);
  const Bytes room = share(one.needs() + two.needs(), 0.8);
  Session first(with_budget(room, 20)), second(with_budget(room, 20));
  const Beside other([&] { two.step(second); });
  for (int i = 0; i < 10; ++i) one.step(first);
}

TEST(OverlapThread, TwoThreadsTrainWithOneSession) {
  Tower one(1, 16), two(2, 24);
  Session session(with_budget(share(one.needs() + two.needs(), 0.8), 20));
  const Beside other([&] { two.step(session); });
  for (int i = 0; i < 10; ++i) one.step(session);
}

TEST(OverlapThread, ThreadsComeAndGoWithAStepEach) {
  Tower tower(4, 12);
  Session session(evicting());
  for (int i = 0; i < 10; ++i) std::thread([&] { tower.step(session); }).join();
}

// ---- others that draw and allocate ----

TEST(OverlapThread, ALoaderThatDrawsAndAllocatesPressesTheTraining) {
  Tower tower(5, 24);
  constexpr int rows = 64;
  const Bytes own = 4 * counted_here(rows * rows * sizeof(float));
  Session session(with_budget(share(tower.needs(), 0.8) + own));
  const Beside loader([] {
    std::vector<Tensor> batches;
    for (int i = 0; i < 3; ++i) batches.push_back(at::rand({rows, rows}));
  });
  for (int i = 0; i < 10; ++i) tower.step(session);
}

// The sum of x * mask has the mask as its gradient.
TEST(OverlapThread, MasksAreTheSameInBackwardWhileALoaderDraws) {
  const Tensor ones = at::ones({64, 64});
  const Beside loader([] { (void)at::rand({16}); });
  Session session(evicting());
  for (int i = 0; i < 10; ++i) {
    Tensor x = ones.clone().requires_grad_(true), seen;
    {
      const Step step = session.step();
      const Tensor mask = at::bernoulli(ones, 0.5), noise = at::randn_like(ones);
      seen = mask * noise;
      (x * mask * noise).sum().backward();
    }
    EXPECT_TRUE(at::equal(x.grad(), seen)) << "step " << i;
  }
}

// multinomial allocates while it holds the generator's lock.
TEST(OverlapThread, ASamplerAllocatesUnderTheLockOfTheGeneratorWhileTrainingDraws) {
  constexpr int rows = 5000;
  const Tensor ones = at::ones({64, 64}), weights = at::rand({rows});
  Tower tower(6, 24);
  const Bytes own = 3 * counted_here(rows * sizeof(float)), masks = 3 * counted_here(ones.nbytes());
  Session session(with_budget(share(tower.needs(), 0.5) + own / 2 + masks));
  const Beside sampler([&] {
    try {
      (void)at::multinomial(weights, 16, true);
    } catch (const BudgetError&) {
    }
  });
  for (int i = 0; i < 60; ++i) {
    {
      const Step step = session.step();
      const Tensor mask = at::bernoulli(ones, 0.5);
      (tower.loss() + (ones * mask).sum()).backward();
    }
    tower.expect_right();
  }
}

// ---- others that free, plan and ask ----

TEST(OverlapThread, GraphsAreFreedByAnotherThreadWhileTheNextStepRuns) {
  Tower tower(7, 16);
  Session session(evicting());
  std::mutex mutex;
  std::deque<Tensor> graphs;
  {
    const Beside collector([&] {
      Tensor graph;  // dropped without the lock
      const std::scoped_lock lock(mutex);
      if (graphs.empty()) return;
      graph = std::move(graphs.front());
      graphs.pop_front();
    });
    for (int i = 0; i < 10; ++i) {
      {
        const Step step = session.step();
        Tensor unused = tower.loss();
        {
          const std::scoped_lock lock(mutex);
          graphs.push_back(std::move(unused));
        }
        tower.loss().backward();
      }
      tower.expect_right();
    }
  }
}

TEST(OverlapThread, PlansAreMadeWhileStepsRun) {
  Tower one(8, 16), two(9, 24), three(10, 20);
  Session session(with_budget(share(two.needs(), 0.7), 30));
  for (int i = 0; i < 8; ++i) {
    one.step(session);
    two.step(session);
    three.step(session);
  }
  session.wait_for_plan();
  two.step(session);
}

TEST(OverlapThread, ASessionIsAskedByAnotherThreadWhileItsStepsRun) {
  Tower tower(11, 16);
  Session session(with_budget(share(tower.needs(), 0.7), 20));
  const Beside curious([&] {
    (void)session.summary();
    (void)session.trace();
    (void)session.plan();
    (void)session.budget();
  });
  for (int i = 0; i < 10; ++i) tower.step(session);
}

TEST(OverlapThread, TheBudgetIsChangedByAnotherThreadWhileStepsRun) {
  Tower tower(12, 16);
  const Bytes level = meter_here().live();
  Session session(with_budget(2 * tower.needs(), 20));
  const Beside owner([&] {
    for (const double part : {2.0, 1.5, 1.2}) session.budget(level + share(tower.needs(), part));
  });
  for (int i = 0; i < 10; ++i) tower.step(session);
}

TEST(OverlapThread, ASessionEndsWhileAnotherThreadHasItsGraphs) {
  Tower tower(13, 16), other(14, 16);
  for (int i = 0; i < 5; ++i) {
    std::optional<Session> session(evicting());
    Tensor loss;
    {
      const Step step = session->step();
      loss = tower.loss();
    }
    std::thread backward([&] {
      loss.backward();
      loss.reset();
    });
    session.reset();
    Session next(evicting());
    other.step(next);
    backward.join();
    tower.expect_right();
  }
}

// ---- whether anybody looks ----

// Not a test but what one is for: two threads write in one place without a lock, far below LibTorch's engine. Under the
// thread sanitizer CTest runs it, with the same suppressions, and expects the report.
TEST(OverlapControl, DISABLED_HooksOfTwoBackwardsCountInOnePlace) {
  int count = 0;
  const auto backward = [&] {
    const Tensor x = at::ones({4}).requires_grad_(true);
    for (int i = 0; i < 1000; ++i) {
      const Tensor y = x * 2;
      y.register_hook([&](const Tensor&) { ++count; });
      y.sum().backward();
    }
  };
  std::thread other(backward);
  backward();
  other.join();
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace reprise
