// The end of the process: with graphs, errors, plans and children that are still around, it is the one that the program
// asked for. Each program here is a process of its own that calls exit(3).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "reprise/torch/session.h"
#include "torch/memory/meter.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

namespace nn = torch::nn;
using at::Tensor;
using testing::within;

nn::Sequential tower(int layers) {
  nn::Sequential model;
  for (int i = 0; i < layers; ++i) {
    model->push_back(nn::Linear(64, 64));
    model->push_back(nn::Tanh());
  }
  return model;
}

// Two branches: when backward is interrupted in one, the engine still has the other in its queue.
struct TwoBranches {
  nn::Sequential one = tower(30), two = tower(30);
  Tensor x = torch::randn({256, 64}), middle;

  Tensor loss() {
    const Tensor first = one->forward(x).sum();
    middle = two->forward(x);  // the engine goes back from here first
    return first + middle.sum();
  }
  // A plain backward first: what the engine makes on this thread is then older than what Reprise makes.
  TwoBranches() { one->forward(x).sum().backward(); }
};

void backward_with_an_error_of_the_users(SessionOptions options) {
  TwoBranches model;
  Session session(std::move(options));
  {
    const auto step = session.step();
    tower(2)->forward(model.x).sum().backward();
  }
  const auto step = session.step();
  const Tensor loss = model.loss();
  model.middle.register_hook([](const Tensor&) -> Tensor { throw std::domain_error("the user's own"); });
  try {
    loss.backward();
  } catch (const std::domain_error&) {
    return;
  }
  std::exit(1);
}

void backward_with_a_budget_error() {
  TwoBranches model;
  Session session(within(no_limit));
  Tensor loss;
  const auto step = session.step();
  loss = model.loss();
  const Bytes level = meter::limit();
  meter::limit(meter::live() + 1000);
  try {
    loss.backward();
  } catch (const BudgetError&) {
    meter::limit(level);
    return;
  }
  std::exit(1);
}

// Ends a process that hangs, too.
[[noreturn]] void end() {
  alarm(20);
  std::exit(3);
}

// In the child of a fork: exit code 3 if it ends in time and as it should.
template <class Child>
[[noreturn]] void end_as_the_child_of(Child&& child) {
  const pid_t process = fork();
  if (process == 0) {
    alarm(20);
    child();
    std::exit(3);
  }
  int status = 0;
  waitpid(process, &status, 0);
  alarm(20);
  std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

class ExitDeathTest : public ::testing::Test {
 protected:
  ExitDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ExitDeathTest, IsCleanAfterAnErrorOfTheUsersInBackward) {
  EXPECT_EXIT((backward_with_an_error_of_the_users(within(meter::live() + 64_MiB)), end()),
              ::testing::ExitedWithCode(3), "");
}

TEST_F(ExitDeathTest, IsCleanAfterAnErrorOfTheUsersInBackwardWithEverythingEvicted) {
  EXPECT_EXIT((backward_with_an_error_of_the_users(testing::evicting_everything()), end()),
              ::testing::ExitedWithCode(3), "");
}

TEST_F(ExitDeathTest, IsCleanAfterABudgetErrorInBackward) {
  EXPECT_EXIT((backward_with_a_budget_error(), end()), ::testing::ExitedWithCode(3), "");
}

TEST_F(ExitDeathTest, IsCleanAfterAnErrorInTheBackwardOfAThreadThatHasEnded) {
  EXPECT_EXIT(
      (std::async(std::launch::async, [] { backward_with_an_error_of_the_users(testing::evicting_everything()); })
           .get(),
       end()),
      ::testing::ExitedWithCode(3), "");
}

TEST_F(ExitDeathTest, IsCleanWithAGraphInAGlobalObject) {
  const auto program = [] {
    static Tensor output;  // made before anything of Reprise's on this thread, so destroyed after it
    nn::Sequential model = tower(20);
    model->forward(torch::ones({16, 64})).sum().backward();
    static Session session(testing::evicting_everything());
    const auto step = session.step();
    output = model->forward(torch::ones({16, 64}));
  };
  EXPECT_EXIT((program(), end()), ::testing::ExitedWithCode(3), "");
}

TEST_F(ExitDeathTest, IsCleanWithAGraphInAnObjectOfTheThread) {
  const auto program = [] {
    static thread_local Tensor output;
    nn::Sequential model = tower(20);
    Session session(testing::evicting_everything());
    const auto step = session.step();
    output = model->forward(torch::ones({16, 64}));
  };
  EXPECT_EXIT((program(), end()), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT((std::thread(program).join(), end()), ::testing::ExitedWithCode(3), "");
}

// Plans are made for a long time, and the second step is open.
template <class Open>
void train_and_open(Open&& open) {
  testing::SmallTraining training;
  static Session session(within(training.budget(0.8), std::chrono::seconds(30)));
  {
    const auto step = session.step();
    (void)training.step();
  }
  open(session);
}

// While the planning thread is about to start, starts, and makes what it needs for the first time.
TEST_F(ExitDeathTest, IsCleanRightAfterTheFirstPlanWasAskedFor) {
  for (const int microseconds : {0, 100, 200, 400, 700, 1000, 1500, 2500}) {
    EXPECT_EXIT(train_and_open([=](Session&) {
                  usleep(microseconds);
                  end();
                }),
                ::testing::ExitedWithCode(3), "");
  }
}

TEST_F(ExitDeathTest, IsCleanInsideAStepWhilePlansAreMade) {
  EXPECT_EXIT(train_and_open([](Session& session) {
                const auto step = session.step();
                torch::ones({64, 64}, torch::requires_grad()).tanh().sum().backward();
                end();
              }),
              ::testing::ExitedWithCode(3), "");
}

TEST_F(ExitDeathTest, IsCleanWithAnOpenStepInAGlobalObject) {
  EXPECT_EXIT(train_and_open([](Session& session) {
                static const Step step = session.step();
                torch::ones({64, 64}, torch::requires_grad()).tanh().sum().backward();
                end();
              }),
              ::testing::ExitedWithCode(3), "");
}

TEST_F(ExitDeathTest, OfAForkedChildIsCleanAfterItHasDoneNothingTrainedOrWaitedForAPlan) {
  const auto program = [](int kind) {
    testing::SmallTraining training;
    static Session session(within(training.budget(0.8), std::chrono::milliseconds(100)));
    for (int i = 0; i < 3; ++i) {
      const auto step = session.step();
      (void)training.step();
    }
    session.wait_for_plan();
    end_as_the_child_of([&] {
      if (kind == 0) return;
      {
        const auto step = session.step();
        (void)training.step(kind == 1 ? 0 : 200);
      }
      if (kind == 2) session.wait_for_plan();
    });
  };
  for (const int kind : {0, 1, 2}) EXPECT_EXIT(program(kind), ::testing::ExitedWithCode(3), "") << "kind " << kind;
}

}  // namespace
}  // namespace reprise
