// The planning thread: what happens to jobs.
#include "torch/plans/planning_queue.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/child.h"

namespace reprise {
using namespace internal;
namespace {

using testing::Ending;
using testing::in_child;

struct Job final : PlanningJob {
  std::string& log;
  std::string name;
  bool wanted = true;
  std::function<void(const std::atomic<bool>&)> work = [](auto&) {};

  Job(std::string& to, std::string called) : log(to), name(std::move(called)) {}
  bool still_wanted() override { return wanted; }
  void run() override {
    log += name + " runs\n";
    work(cancelled());
  }
  void dropped() noexcept override { log += name + " is dropped\n"; }
};

class PlanningQueue : public ::testing::Test {
 protected:
  PlanningQueue() { Planning::of_process().prepare(); }
};

TEST_F(PlanningQueue, JobsRunInTheirOrderAndThoseThatAreNotWantedAnyMoreAreDropped) {
  std::string log;
  for (const char* name : {"one", "two", "three"}) {
    auto job = std::make_shared<Job>(log, name);
    job->wanted = job->name != "two";
    EXPECT_TRUE(Planning::of_process().add(job));
  }
  Planning::of_process().wait();
  EXPECT_EQ(log, "one runs\ntwo is dropped\nthree runs\n");
}

TEST_F(PlanningQueue, WhoWaitsForAJobDoesNotWaitForThoseBehindIt) {
  std::string log;
  std::atomic<bool> go_on = false;
  auto second = std::make_shared<Job>(log, "two");
  second->work = [&](auto&) {
    while (!go_on) std::this_thread::yield();
  };
  const std::uint64_t one = Planning::of_process().add(std::make_shared<Job>(log, "one"));
  const std::uint64_t two = Planning::of_process().add(second);
  Planning::of_process().wait(one);
  EXPECT_TRUE(Planning::of_process().wait(0, std::chrono::milliseconds(0))) << "no job was asked for";
  EXPECT_FALSE(Planning::of_process().wait(two, std::chrono::milliseconds(1)));
  go_on = true;
  Planning::of_process().wait(two);
  EXPECT_EQ(log, "one runs\ntwo runs\n");
}

TEST_F(PlanningQueue, AJobThatThrowsIsDroppedAndTheNextOneRuns) {
  std::string log;
  auto job = std::make_shared<Job>(log, "one");
  job->work = [](auto&) { throw std::runtime_error("no"); };
  Planning::of_process().add(job);
  Planning::of_process().add(std::make_shared<Job>(log, "two"));
  Planning::of_process().wait();
  EXPECT_EQ(log, "one runs\none is dropped\ntwo runs\n");
}

TEST_F(PlanningQueue, AJobIsGoneWhenItIsDone) {
  std::string log;
  auto job = std::make_shared<Job>(log, "one");
  const std::weak_ptr<Job> watched = job;
  Planning::of_process().add(std::move(job));
  Planning::of_process().wait();
  EXPECT_TRUE(watched.expired());
}

TEST_F(PlanningQueue, TheChildOfAForkDoesAllJobsThatWereNotDone) {
  std::string log;
  std::atomic<bool> begun = false, go_on = false;
  auto first = std::make_shared<Job>(log, "one");
  first->work = [&](auto&) {
    begun = true;
    while (!go_on) std::this_thread::yield();
  };
  Planning::of_process().add(first);
  Planning::of_process().add(std::make_shared<Job>(log, "two"));
  while (!begun) std::this_thread::yield();
  const int code = in_child([&] {
    go_on = true;
    Planning::of_process().wait();
    return log == "one runs\none runs\ntwo runs\n" ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  go_on = true;
  Planning::of_process().wait();
  EXPECT_EQ(log, "one runs\ntwo runs\n");
}

// Destroyed after the end of planning, because it was made before there was any.
struct LooksAtTheEnd {
  std::string* log = nullptr;
  ~LooksAtTheEnd() {
    if (!log) return;
    const bool told = *log == "one runs\none is cancelled\ntwo is dropped\n";
    const bool dropped = !Planning::of_process().add(std::make_shared<Job>(*log, "three"));
    Planning::of_process().wait();
    ::_exit(told && dropped && log->ends_with("three is dropped\n") ? 0 : 1);
  }
};
LooksAtTheEnd looks_at_the_end;

TEST_F(PlanningQueue, TheEndOfTheProcessCancelsTheJobThatRunsAndDropsTheOthers) {
  std::string log;
  std::atomic<bool> begun = false;
  const int code = in_child(
      [&] {
        looks_at_the_end.log = &log;
        auto job = std::make_shared<Job>(log, "one");
        job->work = [&](const std::atomic<bool>& cancelled) {
          begun = true;
          while (!cancelled) std::this_thread::yield();
          log += "one is cancelled\n";
        };
        Planning::of_process().add(job);
        Planning::of_process().add(std::make_shared<Job>(log, "two"));
        while (!begun) std::this_thread::yield();
        return 7;
      },
      Ending::by_exit);
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace reprise
