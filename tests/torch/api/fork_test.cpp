// fork(): a child may exit, train and plan, in sessions of its own and in copies of its parent's, whatever other
// threads did at the time.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "reprise/torch/checkpoint_sequential.h"
#include "reprise/torch/session.h"
#include "support/child.h"
#include "torch/memory/meter.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using std::chrono::milliseconds;
using testing::code_of;
using testing::difference;
using testing::Ending;
using testing::evicting_everything;
using testing::in_child;
using testing::SmallTraining;
using testing::start_child;
using testing::within;

// In a child the threads of OpenMP are not there, and LibTorch would wait for them.
class Fork : public ::testing::Test {
 protected:
  Fork() { at::set_num_threads(1); }
};

bool right(SmallTraining& training, std::int64_t rows = 0) {
  return difference(training.expected(rows), training.step(rows)).empty();
}

bool trains(Session& session, SmallTraining& training, int steps = 1, std::int64_t rows = 0) {
  for (int i = 0; i < steps; ++i) {
    auto step = session.step();
    if (!right(training, rows)) return false;
  }
  return true;
}

// A session with a plan, so that there is a planning thread.
struct Planned {
  SmallTraining training;
  Session session;
  explicit Planned(milliseconds planning_time = milliseconds(100), int layers = 6)
      : training(layers), session(within(training.budget(0.5), planning_time)) {
    (void)training.expected(128);
    EXPECT_TRUE(trains(session, training, 2));
  }
};

TEST_F(Fork, AChildExits) {
  Planned planned;
  planned.session.wait_for_plan();
  EXPECT_EQ(in_child([] { return 3; }, Ending::by_exit), 3);
  EXPECT_TRUE(trains(planned.session, planned.training));
}

TEST_F(Fork, AChildWithAGlobalSessionExits) {
  static Planned planned;
  planned.session.wait_for_plan();
  EXPECT_EQ(in_child([] { return trains(planned.session, planned.training) ? 3 : 4; }, Ending::by_exit), 3);
}

TEST_F(Fork, AChildTrainsInASessionOfItsOwn) {
  Planned planned;
  planned.session.wait_for_plan();
  const int code = in_child(
      [&] {
        Session own(within(planned.training.budget(0.6), milliseconds(100)));
        if (!trains(own, planned.training, 2)) return 1;
        own.wait_for_plan();
        if (!trains(own, planned.training, 2)) return 2;
        return own.summary().followed_plan ? 0 : 3;
      },
      Ending::by_exit);
  EXPECT_EQ(code, 0);
}

TEST_F(Fork, AChildTrainsInACopyOfItsParentsSessionByItsPlan) {
  Planned planned;
  planned.session.wait_for_plan();
  const int code = in_child(
      [&] {
        if (!trains(planned.session, planned.training, 2)) return 1;
        return planned.session.summary().followed_plan ? 0 : 2;
      },
      Ending::by_exit);
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(trains(planned.session, planned.training));
  EXPECT_EQ(planned.session.summary().steps, 3);
}

TEST_F(Fork, AStepThatIsOpenGoesOnInBothProcesses) {
  Planned planned;
  planned.session.wait_for_plan();
  planned.training.drop_gradients();
  auto step = std::optional(planned.session.step());
  auto loss = planned.training.loss();
  const auto finish = [&] {
    loss.backward();
    auto results = testing::snapshots(testing::gradients(*planned.training.model(), {loss}));
    results.push_back(testing::generator_snapshot());
    step.reset();
    return difference(planned.training.expected(), results).empty() && planned.session.summary().step_seconds >= 0;
  };
  EXPECT_EQ(in_child([&] { return finish() ? 0 : 1; }), 0);
  EXPECT_TRUE(finish());
}

TEST_F(Fork, AChildWaitsForAPlanThatItAskedFor) {
  Planned planned;
  planned.session.wait_for_plan();
  const int code = in_child(
      [&] {
        if (!trains(planned.session, planned.training, 1, 128)) return 1;
        planned.session.wait_for_plan();
        return planned.session.summary().planning ? 2 : 0;
      },
      Ending::by_exit);
  EXPECT_EQ(code, 0);
}

TEST_F(Fork, APlanThatIsUnderWayIsMadeInBothProcesses) {
  Planned planned(milliseconds(1500), 60);  // too many to find the best plan at once
  std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(planned.session.summary().planning);
  const pid_t child = start_child(
      [&] {
        if (!planned.session.summary().planning) return 1;
        planned.session.wait_for_plan();
        if (planned.session.summary().planning || !planned.session.plan()) return 2;
        return trains(planned.session, planned.training) ? 0 : 3;
      },
      Ending::by_exit);
  planned.session.wait_for_plan();
  EXPECT_TRUE(planned.session.plan());
  EXPECT_EQ(code_of(child), 0);
}

TEST_F(Fork, AChildExitsWhileAPlanIsUnderWayWithoutWaitingForIt) {
  Planned planned(std::chrono::minutes(2), 60);
  std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(planned.session.summary().planning);
  const auto start = std::chrono::steady_clock::now();
  const int code = in_child(
      [&] {
        if (!trains(planned.session, planned.training, 1, 128)) return 1;  // its thread plans, too
        std::this_thread::sleep_for(milliseconds(100));
        return 0;
      },
      Ending::by_exit);
  EXPECT_EQ(code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

// Destroyed after the planning thread has ended, because it was made before there was one. (It does not train: that
// late, backward of LibTorch itself fails.)
struct AsksForAPlanWhenDestroyed {
  Session* session = nullptr;
  Bytes budget = 0;
  ~AsksForAPlanWhenDestroyed() {
    if (!session) return;
    const std::int64_t plans = session->summary().plans;
    session->budget(budget);
    session->wait_for_plan();
    ::_exit(plans == 1 && !session->summary().planning ? 0 : 1);
  }
};
AsksForAPlanWhenDestroyed asks_when_destroyed;

TEST_F(Fork, APlanThatAGlobalObjectAsksForInItsDestructorIsNotMade) {
  Planned planned;
  planned.session.wait_for_plan();
  const int code = in_child(
      [&] {
        asks_when_destroyed.session = &planned.session;
        asks_when_destroyed.budget = planned.training.budget(0.7);
        return 7;
      },
      Ending::by_exit);
  EXPECT_EQ(code, 0);
}

TEST_F(Fork, TheBudgetOfAStepOnAnotherThreadIsNotInForceInTheChild) {
  SmallTraining training;
  const Bytes budget = training.budget(0.6);
  std::atomic<bool> open = false, stop = false;
  std::thread other([&] {
    Session session(within(budget));
    auto step = session.step();
    open = true;
    while (!stop) std::this_thread::yield();
  });
  while (!open) std::this_thread::yield();
  EXPECT_EQ(meter::limit(), budget);
  EXPECT_EQ(in_child([&] { return meter::limit() == meter::unlimited && right(training) ? 0 : 1; }), 0);
  EXPECT_EQ(meter::limit(), budget);
  stop = true;
  other.join();
}

TEST_F(Fork, AHundredChildrenWhileAnotherThreadTrains) {
  SmallTraining training(3, 32, 64), own(3, 32, 64);
  (void)training.expected();
  (void)own.expected();
  std::atomic<bool> stop = false, wrong = false;
  std::thread other([&] {
    Session session(within(training.budget(0.7), milliseconds(20)));
    for (int i = 0; !stop; ++i) wrong = wrong || !trains(session, training);
  });
  int failed = 0;
  for (int i = 0; i < 100 && failed == 0; ++i) {
    failed = in_child(
        [&] {
          Session session(evicting_everything());
          auto step = session.step();
          const auto x = at::ones({16, 16}).requires_grad_(true);
          (x * 2).tanh().exp().sum().backward();
          const auto plain = at::ones({16, 16}) * 2;
          const auto expected = plain.tanh().exp() * (1 - plain.tanh().pow(2)) * 2;
          return at::allclose(x.grad(), expected) ? 0 : 1;
        },
        i % 10 == 0 ? Ending::by_exit : Ending::at_once);
  }
  stop = true;
  other.join();
  EXPECT_EQ(failed, 0);
  EXPECT_FALSE(wrong);
}

}  // namespace
}  // namespace reprise
