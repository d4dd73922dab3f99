// Several threads: models of their own under one budget, loaders that allocate beside the training.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

namespace nn = torch::nn;
using testing::counted_here;
using testing::difference;
using testing::evicting_everything;
using testing::generator_here;
using testing::gradients;
using testing::meter_here;
using testing::SmallTraining;
using testing::Snapshot;
using testing::snapshots;
using testing::thrown_by;
using testing::within;

// A model that one thread trains, with a generator of its own: the default one is shared by all threads.
class Worker {
 public:
  explicit Worker(std::uint64_t seed) : seed_(seed) {
    auto generator = generator_here(seed);
    for (int i = 0; i < 6; ++i) {
      model_->push_back(nn::Linear(64, 64));
      model_->push_back(nn::GELU());
      model_->push_back(nn::Tanh());
    }
    at::NoGradGuard no_grad;
    for (auto& parameter : model_->parameters()) parameter.normal_(0, 0.2, generator);
    x_ = at::randn({256, 64}, generator);
  }

  std::vector<Snapshot> step() {
    model_->zero_grad();
    auto generator = generator_here(seed_);
    const auto mask = torch::empty({256, 64}).bernoulli_(0.7, generator);
    model_->forward(x_ * mask).pow(2).mean().backward();
    auto results = snapshots(gradients(*model_));
    model_->zero_grad();
    return results;
  }

 private:
  std::uint64_t seed_;
  nn::Sequential model_;
  at::Tensor x_;
};

// Steps of this worker, all of them right.
void train(Session& session, Worker& worker, const std::vector<Snapshot>& expected, int steps) {
  for (int i = 0; i < steps; ++i) {
    auto step = session.step();
    EXPECT_EQ(difference(expected, worker.step()), "");
  }
}

struct Pair {
  Worker one{1}, two{2};
  std::vector<Snapshot> first = one.step(), second = two.step();
  Bytes level = meter_here().live(), peak = 0;
  Pair() {
    meter_here().mark_peak();
    (void)one.step();
    peak = meter_here().peak() - level;
  }
};

TEST(SessionThread, TwoModelsInTwoThreadsWithEverythingEvicted) {
  Pair pair;
  Session one(evicting_everything()), two(evicting_everything());
  std::thread first([&] { train(one, pair.one, pair.first, 10); });
  std::thread second([&] { train(two, pair.two, pair.second, 10); });
  first.join();
  second.join();
  EXPECT_EQ(one.summary().steps, 10);
  EXPECT_EQ(meter_here().live(), pair.level);
}

TEST(SessionThread, TwoSessionsUnderOneBudget) {
  Pair pair;
  const Bytes budget = pair.level + pair.peak * 13 / 10;
  Session one(within(budget)), two(within(budget));
  meter_here().mark_peak();
  std::thread first([&] { train(one, pair.one, pair.first, 20); });
  std::thread second([&] { train(two, pair.two, pair.second, 20); });
  first.join();
  second.join();
  EXPECT_LE(meter_here().peak(), budget);
  EXPECT_LE(one.summary().peak(), budget);
  EXPECT_LE(two.summary().peak(), budget);
  EXPECT_EQ(meter_here().live(), pair.level);
}

TEST(SessionThread, TwoPlannedSessionsUnderOneBudget) {
  Pair pair;
  const Bytes budget = pair.level + pair.peak * 16 / 10;
  Session one(within(budget, std::chrono::milliseconds(200))), two(within(budget, std::chrono::milliseconds(200)));
  meter_here().mark_peak();
  for (int i = 0; i < 4; ++i) {
    std::thread first([&] { train(one, pair.one, pair.first, 3); });
    std::thread second([&] { train(two, pair.two, pair.second, 3); });
    first.join();
    second.join();
    one.wait_for_plan();
    two.wait_for_plan();
  }
  EXPECT_LE(meter_here().peak(), budget);
  EXPECT_EQ(meter_here().live(), pair.level);
}

// Both are open from the first operator to the end of backward, in every step.
TEST(SessionThread, StepsSideBySideFollowPlansForTheirShareOfTheBudget) {
  Pair pair;
  const Bytes budget = pair.level + pair.peak * 14 / 10;
  Session one(within(budget, std::chrono::milliseconds(200))), two(within(budget, std::chrono::milliseconds(200)));
  std::barrier both(2);
  meter_here().mark_peak();
  const auto train_beside = [&both](Session& session, Worker& worker, const std::vector<Snapshot>& expected) {
    int followed = 0;
    for (int i = 0; i < 8; ++i) {
      {
        auto step = session.step();
        both.arrive_and_wait();
        try {
          EXPECT_EQ(difference(expected, worker.step()), "");
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
        both.arrive_and_wait();
      }
      followed += session.summary().followed_plan;
      session.wait_for_plan();
      both.arrive_and_wait();
    }
    EXPECT_GE(followed, 2) << session.summary();
  };
  std::thread first([&] { train_beside(one, pair.one, pair.first); });
  std::thread second([&] { train_beside(two, pair.two, pair.second); });
  first.join();
  second.join();
  EXPECT_LE(meter_here().peak(), budget);
  EXPECT_GT(one.summary().replays + two.summary().replays, 0);
  EXPECT_EQ(meter_here().live(), pair.level);
}

TEST(SessionThread, OneSessionWithTwoTrainingThreads) {
  Pair pair;
  const Bytes budget = pair.level + pair.peak * 14 / 10;
  Session session(within(budget));
  std::thread first([&] { train(session, pair.one, pair.first, 20); });
  std::thread second([&] { train(session, pair.two, pair.second, 20); });
  first.join();
  second.join();
  EXPECT_LE(session.summary().peak(), budget);
  EXPECT_EQ(session.summary().steps, 40);
  EXPECT_EQ(meter_here().live(), pair.level);
}

TEST(SessionThread, TheSmallestBudgetOfTheOpenStepsCounts) {
  Session wide(within(no_limit)), narrow(within(meter_here().live() + 1_MiB));
  auto step = wide.step();
  std::atomic<bool> opened = false, done = false;
  std::thread other([&] {
    auto narrow_step = narrow.step();
    opened = true;
    while (!done) std::this_thread::yield();
  });
  while (!opened) std::this_thread::yield();
  const auto error = thrown_by<BudgetError>([&] { (void)torch::empty({2 << 20}, torch::kByte); });
  done = true;
  other.join();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->facts().budget, narrow.budget());
  EXPECT_NO_THROW((void)torch::empty({2 << 20}, torch::kByte)) << "its step is closed";
}

TEST(SessionThread, ALoaderAllocatesBesideTheTraining) {
  SmallTraining training;
  const auto& expected = training.expected();
  const Bytes slack = 4 * counted_here(64 * 64 * sizeof(float));
  const Bytes budget = training.budget(0.7) + slack;
  Session session(within(budget));
  std::atomic<bool> done = false;
  std::atomic<int> loaded = 0;
  std::thread loader([&] {
    auto generator = generator_here(7);
    while (!done) {
      std::vector<at::Tensor> batches;
      for (int i = 0; i < 4; ++i) batches.push_back(torch::empty({64, 64}).uniform_(0, 1, generator));
      ++loaded;
    }
  });
  for (int i = 0; i < 20 || loaded < 20; ++i) {
    auto step = session.step();
    EXPECT_EQ(difference(expected, training.step()), "");
    training.drop_gradients();
  }
  done = true;
  loader.join();
  EXPECT_LE(session.summary().peak(), budget);
}

TEST(SessionThread, ALoaderThatWantsTooMuchGetsTheError) {
  SmallTraining training;
  const auto& expected = training.expected();
  Session session(within(training.budget(1.2)));
  auto step = session.step();
  bool refused = false;
  std::thread([&] {
    try {
      (void)torch::empty({training.peak() * 2}, torch::kByte);
    } catch (const BudgetError&) {
      refused = true;
    }
  }).join();
  EXPECT_TRUE(refused);
  EXPECT_EQ(difference(expected, training.step()), "");
}

// A data set of rows that are computed when they are asked for.
struct Rows : torch::data::datasets::Dataset<Rows> {
  torch::data::Example<> get(std::size_t index) override {
    return {torch::full({64}, 0.01 * static_cast<double>(index)), torch::full({1}, static_cast<double>(index))};
  }
  std::optional<std::size_t> size() const override { return 128; }
};

TEST(SessionThread, TheLoaderOfLibTorchWithWorkers) {
  Worker worker(3);
  nn::Sequential model(nn::Linear(64, 128), nn::Tanh(), nn::Linear(128, 128), nn::GELU(), nn::Linear(128, 1));
  const auto train_on_all = [&](Session* session) {
    model->zero_grad();
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        Rows().map(torch::data::transforms::Stack<>()),
        torch::data::DataLoaderOptions(32).workers(2).enforce_ordering(true));
    for (auto& batch : *loader) {
      std::optional<Step> step;
      if (session) step = session->step();
      (model->forward(batch.data) - batch.target).pow(2).mean().backward();
    }
    return snapshots(gradients(*model));
  };
  const auto expected = train_on_all(nullptr);
  Session session(evicting_everything());
  EXPECT_EQ(difference(expected, train_on_all(&session)), "");
}

TEST(SessionThread, AShareIsMeasuredByPlainStepsWhileThatOfAnotherSessionHolds) {
  SessionOptions options = testing::options_here();
  options.budget = "0.8x";
  Worker first(5), second(6);
  const auto of_first = first.step(), of_second = second.step();
  Session held(options), measuring(options);
  train(held, first, of_first, 2);
  ASSERT_NE(held.budget(), no_limit);
  {
    const auto open = held.step();
    std::thread([&] { train(measuring, second, of_second, 2); }).join();
  }
  EXPECT_NE(measuring.budget(), no_limit);
  train(held, first, of_first, 1);
  EXPECT_LE(held.summary().peak_last_step(), held.budget());
}

TEST(SessionThread, ThreadsComeAndGo) {
  Worker worker(4);
  const auto expected = worker.step();
  const Bytes before = meter_here().live();
  Session session(evicting_everything());
  for (int i = 0; i < 20; ++i) std::thread([&] { train(session, worker, expected, 1); }).join();
  EXPECT_EQ(session.summary().steps, 20);
  EXPECT_EQ(meter_here().live(), before);
}

}  // namespace
}  // namespace reprise
