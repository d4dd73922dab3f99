// Planning of a chain: watched, ended early, and in the background.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "chain/growing_limits.h"
#include "chain/toy.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::Toy;

const Numbers input = some_numbers(16, 1), seed = some_numbers(16, 2);
constexpr Bytes state_bytes = 16 * sizeof(double);

// Sizes that no planner is done with quickly, and the same for every run.
ChainForm difficult(Id layers) {
  ChainForm form = equal_layers(layers);
  form.input = form.gradient = state_bytes;
  for (Id k = 0; k < layers; ++k) {
    form.layers[k] = {state_bytes, 0, state_bytes, (k * 37) % 100, 1.0 + (k * 17) % 23, 1.0};
  }
  return form;
}

TEST(ChainPlanning, IsReportedToTheObserver) {
  const Toy toy;
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.schedule(schedule::budget(15 * state_bytes, 200ms));
  std::vector<double> shares;
  int layers = 0;
  chain.observer([&](const ChainProgress& progress) {
    if (progress.phase == ChainProgress::Phase::planning) {
      EXPECT_EQ(layers, 0);
      shares.push_back(progress.planned);
    } else {
      ++layers;
    }
  });
  (void)chain.forward(input);
  ASSERT_FALSE(shares.empty());
  EXPECT_EQ(shares.front(), 0);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_LE(shares.back(), 1);
  EXPECT_EQ(layers, 60);
}

TEST(ChainPlanning, EndsWithTheBestPlanSoFarWhenItIsCancelled) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(60), input, seed);
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.schedule(schedule::budget(15 * state_bytes, 1h));
  int reports = 0;
  chain.observer([&](const ChainProgress& progress) {
    if (progress.phase == ChainProgress::Phase::planning && ++reports == 3) chain.cancel_planning();
  });
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_LE(chain.statistics().peak_stored, 15 * state_bytes);
}

TEST(ChainPlanning, CanBeCancelledByAnotherThread) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(60), input, seed);
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.schedule(schedule::budget(15 * state_bytes, 1h));
  std::atomic<bool> planning = false, over = false;
  chain.observer([&](const ChainProgress& progress) {
    if (progress.phase == ChainProgress::Phase::planning) planning = true;
  });
  std::thread other([&] {
    while (!planning) std::this_thread::yield();
    while (!over) chain.cancel_planning(), std::this_thread::yield();
  });
  EXPECT_EQ(chain.forward(input), plain.result);
  over = true;
  other.join();
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

TEST(ChainPlanning, AnObserverThatThrowsEndsThePassAndTheChainCanBeRunAgain) {
  const Toy toy;
  struct Thrown {};
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.schedule(schedule::budget(15 * state_bytes, 100ms));
  bool throws = true;
  chain.observer([&](const ChainProgress& progress) {
    if (throws && progress.phase == ChainProgress::Phase::planning) throw Thrown();
  });
  EXPECT_THROW((void)chain.forward(input), Thrown);
  EXPECT_EQ(chain.statistics().stored, 0);
  throws = false;
  const auto plain = toy.plain(first_layers(60), input, seed);
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

TEST(ChainPlanning, InTheBackgroundDoesNotKeepThePassWaitingAndServesALaterOne) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(60), input, seed);
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.plan_in_background(true);
  chain.schedule(schedule::budget(15 * state_bytes, 300ms));
  std::vector<double> costs;
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(chain.forward(input), plain.result);
    costs.push_back(simulate(chain.trace(), chain.plan()).cost);
    EXPECT_EQ(chain.backward(seed), plain.gradient);
    EXPECT_LE(chain.statistics().peak_stored, 15 * state_bytes);
    if (pass == 0) chain.wait_for_plan();
  }
  EXPECT_LE(costs[1], costs[0]);
  EXPECT_EQ(costs[2], costs[1]);
}

TEST(ChainPlanning, InTheBackgroundEndsWhenItsSettingsOrItsChainDo) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(60), input, seed);
  auto chain = std::make_unique<Chain<Numbers>>(toy.chain(60));
  chain->sizes(difficult(60));
  chain->plan_in_background(true);
  chain->schedule(schedule::budget(15 * state_bytes, 1h));
  (void)chain->forward(input);
  chain->schedule(schedule::budget(20 * state_bytes, 1h));
  EXPECT_EQ(chain->backward(seed), plain.gradient);
  EXPECT_EQ(chain->forward(input), plain.result);
  EXPECT_EQ(chain->backward(seed), plain.gradient);
  Chain<Numbers> moved = std::move(*chain);
  chain.reset();
  EXPECT_EQ(moved.forward(input), plain.result);
  EXPECT_EQ(moved.backward(seed), plain.gradient);
}

// A schedule with one plan that is found at once, and another one that takes longer.
class TwoPlans : public Schedule {
 public:
  TwoPlans(SchedulePointer at_once, SchedulePointer later) : at_once_(std::move(at_once)), later_(std::move(later)) {}
  Plan plan(const ChainForm& form) const override { return later_->plan(form); }
  Plan watched_plan(const ChainForm& form, const ChainPlanning& planning) const override {
    return (planning.at_once ? at_once_ : later_)->plan(form);
  }
  bool needs_sizes() const override { return true; }
  std::optional<Bytes> limit() const override { return Bytes{1} << 30; }

 private:
  const SchedulePointer at_once_, later_;
};

// A schedule whose first plan takes a while, or is never found, and whose best one is there only when it is cancelled.
class SlowPlans : public Schedule {
 public:
  explicit SlowPlans(bool finds_one) : finds_one_(finds_one) {}
  Plan watched_plan(const ChainForm& form, const ChainPlanning& planning) const override {
    if (!planning.at_once) {
      ++asked_for_the_best;
      while (!*planning.cancel) std::this_thread::yield();
      throw BadOption("no plan");
    }
    for (const double share : {0.1, 0.2, 0.3}) planning.progress(share);
    if (!finds_one_ || *planning.cancel) throw BadOption("no plan");
    return schedule::slots(3)->plan(form);
  }
  bool needs_sizes() const override { return true; }
  std::optional<Bytes> limit() const override { return Bytes{1} << 30; }

  mutable std::atomic<int> asked_for_the_best = 0;

 private:
  const bool finds_one_;
};

TEST(ChainPlanning, InTheBackgroundWaitsForTheFirstPlanOnlyAndTellsTheObserver) {
  const Toy toy;
  const auto plain = toy.plain(first_layers(60), input, seed);
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.plan_in_background(true);
  chain.schedule(std::make_shared<SlowPlans>(true));
  std::vector<double> shares;
  chain.observer([&](const ChainProgress& progress) {
    if (progress.phase == ChainProgress::Phase::planning) shares.push_back(progress.planned);
  });
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
  EXPECT_EQ(shares, (std::vector{0.1, 0.2, 0.3}));
}

TEST(ChainPlanning, InTheBackgroundIsAnErrorIfThereIsNoFirstPlanAndNothingElseIsWaitedFor) {
  const Toy toy;
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.plan_in_background(true);
  const auto slow = std::make_shared<SlowPlans>(false);
  chain.schedule(slow);
  EXPECT_THROW((void)chain.forward(input), BadOption);
  EXPECT_EQ(slow->asked_for_the_best, 0);
}

TEST(ChainPlanning, TheFirstPlanInTheBackgroundCanBeCancelled) {
  const Toy toy;
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.plan_in_background(true);
  const auto slow = std::make_shared<SlowPlans>(true);
  chain.schedule(slow);
  chain.observer([&](const ChainProgress& progress) {
    if (progress.phase == ChainProgress::Phase::planning) chain.cancel_planning();
  });
  testing::expect_chain_error([&] { (void)chain.forward(input); }, "planning was cancelled");
  EXPECT_EQ(slow->asked_for_the_best, 0);
}

TEST(ChainPlanning, LimitsForTheFirstPlanGrowUntilTheyAreTheWholeTogether) {
  for (const double whole : {0.0, 0.02, 0.05, 0.09, 0.1, 0.11, 1.0, 5.0, 3600.0}) {
    internal::GrowingLimits limits(50ms, std::chrono::duration<double>(whole));
    double sum = 0, last = 0;
    int count = 0;
    while (const auto limit = limits.next()) {
      EXPECT_DOUBLE_EQ(limits.given_before().count(), sum);
      if (count == 0) EXPECT_LE(limit->count(), 0.15);
      EXPECT_GE(limit->count(), 2 * last);
      last = limit->count();
      sum += last;
      ASSERT_LT(++count, 100);
    }
    EXPECT_DOUBLE_EQ(sum, whole);
    EXPECT_GE(last, whole / 2);
    EXPECT_FALSE(limits.next());
  }
}

TEST(ChainPlanning, InTheBackgroundGoesOnDuringAPassThroughTheLastLayersAlone) {
  const Toy toy;
  auto chain = toy.chain(60);
  chain.sizes(difficult(60));
  chain.plan_in_background(true);
  chain.schedule(std::make_shared<TwoPlans>(schedule::slots(3), schedule::slots(7)));
  (void)chain.forward(input);
  EXPECT_EQ(chain.plan().actions, schedule::slots(3)->plan(chain.sizes()).actions);
  chain.backward(seed);
  (void)chain.forward(input, 50);
  chain.backward(seed);
  chain.wait_for_plan();
  (void)chain.forward(input);
  EXPECT_EQ(chain.plan().actions, schedule::slots(7)->plan(chain.sizes()).actions);
  chain.backward(seed);
}

// The state after layer 20 is larger than the plan was made for, and by then there are other settings.
TEST(ChainPlanning, InTheBackgroundIsForTheSettingsOfTheNextPassAndNotForThoseOfTheOneThatGoesOn) {
  bool change = false;
  Chain<Numbers>* self = nullptr;
  Chain<Numbers> chain(
      60,
      [&](int layer, const Numbers& x) {
        if (layer == 10 && std::exchange(change, false)) {
          self->schedule(std::make_shared<TwoPlans>(schedule::slots(4), schedule::slots(8)));
        }
        return layer == 20 ? Numbers(3 * x.size(), x[0]) : x;
      },
      [](int layer, const Numbers&, Numbers gradient) {
        return layer == 20 ? Numbers(gradient.size() / 3, gradient[0]) : gradient;
      });
  self = &chain;
  ChainForm form = difficult(60);
  form.gradient = 3 * state_bytes;
  for (Id k = 21; k < 60; ++k) form.layers[k].gradient = form.gradient;
  chain.sizes(form);
  chain.plan_in_background(true);
  chain.schedule(std::make_shared<TwoPlans>(schedule::slots(3), schedule::slots(7)));
  change = true;
  (void)chain.forward(input);
  chain.backward(some_numbers(48, 2));
  chain.wait_for_plan();
  (void)chain.forward(input);
  EXPECT_EQ(chain.plan().actions, schedule::slots(4)->plan(form).actions);
  chain.backward(some_numbers(48, 2));
  chain.wait_for_plan();
  (void)chain.forward(input);
  EXPECT_EQ(chain.plan().actions, schedule::slots(8)->plan(form).actions);
  chain.backward(some_numbers(48, 2));
}

}  // namespace
}  // namespace reprise
