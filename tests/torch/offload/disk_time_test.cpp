// What a disk costs and how long it takes, in plans and in steps that follow them. Operators take a known time, and so
// do files.
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <atomic>
#include <limits>
#include <thread>

#include "reprise/plan/planner.h"
#include "reprise/torch/session.h"
#include "store/store_support.h"
#include "torch/libtorch/clock.h"
#include "torch/memory/meter.h"
#include "torch/offload/disk_settings.h"
#include "torch/offload/disk_tier.h"

namespace reprise::testing {
using namespace internal;
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr double of_operator = 3000;  // microseconds of CPU
constexpr std::int64_t value_rows = 128, value_columns = 512;
constexpr Bytes of_value = value_rows * value_columns * 4;

// Takes its time, and makes something of its own.
at::Tensor take_long(const at::Tensor& x) {
  const double start = thread_microseconds();
  at::Tensor y = x + 1;
  while (thread_microseconds() - start < of_operator) {
  }
  return y;
}
TORCH_LIBRARY(reprise_disk_time_test, library) {
  library.def("take_long(Tensor x) -> Tensor");
  library.impl("take_long", c10::DispatchKey::CPU, take_long);
}

// Saves what comes in for backward, which takes as long.
struct TakeLong : torch::autograd::Function<TakeLong> {
  static at::Tensor run(const at::Tensor& x) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("reprise_disk_time_test::take_long", "")
                               .typed<at::Tensor(const at::Tensor&)>();
    const at::AutoDispatchBelowADInplaceOrView below;
    return op.call(x);
  }
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    at::Tensor y = run(x);
    context->save_for_backward({y});
    return y;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    const double start = thread_microseconds();
    at::Tensor result = gradients[0] * context->get_saved_variables()[0];
    while (thread_microseconds() - start < of_operator) {
    }
    return {result};
  }
};

// Nothing runs beside it: a test of time.
class DiskTimeThread : public ::testing::Test {
 protected:
  static constexpr int layers = 10;

  void step() {
    weight_.mutable_grad() = at::Tensor();
    at::Tensor h = at::ones({value_rows, value_columns}) * weight_;
    for (int i = 0; i < layers; ++i) h = TakeLong::apply(h);
    h.sum().backward();
  }
  // Room for so many values beside what is always there.
  [[nodiscard]] SessionOptions within(int values, bool disk) {
    SessionOptions options;
    options.budget = meter::live() + values * of_value;
    options.pack = false;
    options.planning_time = milliseconds(500);
    options.planning_share = std::numeric_limits<double>::infinity();
    if (disk) options.disk = {.folder = folder_.path()};
    return options;
  }
  // Everything that is written or read takes so long, and no CPU.
  void files_take(microseconds time) {
    files_.before = [time](FileOperation operation, auto&) {
      if (operation == FileOperation::create || operation == FileOperation::open) std::this_thread::sleep_for(time);
    };
  }
  Summary follow_a_plan(Session& session) {
    for (int i = 0; i < 7; ++i) {
      {
        auto open = session.step();
        step();
      }
      session.wait_for_plan();
    }
    EXPECT_TRUE(session.summary().followed_plan);
    return session.summary();
  }

  at::Tensor weight_ = at::full({value_columns}, 0.5f).requires_grad_(true);
  TemporaryFolder folder_;
  WatchedFiles files_;
  const internal::DiskOfTest disk_{&files_};
};

TEST_F(DiskTimeThread, OfPlannedTransfersIsBesideTheComputation) {
  files_take(microseconds(1000));
  Session session(within(9, true));
  const Summary summary = follow_a_plan(session);
  EXPECT_GT(summary.disk_put_last_step, 0);
  EXPECT_GT(summary.disk_seconds, 0.002);
  EXPECT_LT(summary.disk_wait_seconds, 0.5 * summary.disk_seconds);
}

TEST_F(DiskTimeThread, IsWhyASlowDiskIsNotUsed) {
  files_take(milliseconds(60));
  Session session(within(6, true));
  EXPECT_EQ(follow_a_plan(session).disk_put_last_step, 0) << "a whole step takes as long as a file";
}

TEST_F(DiskTimeThread, IsLearntWhenADiskBecomesSlow) {
  Session session(within(6, true));
  EXPECT_GT(follow_a_plan(session).disk_put_last_step, 0);
  files_take(milliseconds(60));
  for (int i = 0; i < 12 && session.summary().disk_put_last_step > 0; ++i) {
    {
      auto open = session.step();
      step();
    }
    session.wait_for_plan();
  }
  EXPECT_EQ(session.summary().disk_put_last_step, 0);
}

TEST_F(DiskTimeThread, IsPromisedToBeAtMostThatWithoutADisk) {
  for (const int values : {5, 7, 9}) {
    Session with(within(values, true));
    (void)follow_a_plan(with);
    const Trace trace = with.trace().value();
    ASSERT_FALSE(trace.tiers.empty());
    EXPECT_TRUE(trace.tiers.back().overlaps());
    Trace without = trace;
    without.tiers.clear();
    PlanOptions options;
    options.budget = with.budget();
    options.moves = 20000;
    const PlanResult plan = make_plan(without, options);
    ASSERT_TRUE(plan.has_plan());
    const double promised = plan.simulation.cost / trace.total_cost() - 1;
    EXPECT_LE(with.summary().promised_overhead.value(), promised + 0.02) << values << ": by other measured costs";
  }
}

// ---- the costs -----------------------------------------------------------------------------------------------------

class DiskCostsThread : public ::testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<DiskTransferTier> open() {
    return DiskTransferTier::open({.folder = folder_.path(), .files = &files_});
  }

  TemporaryFolder folder_;
  WatchedFiles files_;
};

TEST_F(DiskCostsThread, TellCpuTimeFromTime) {
  files_.before = [](FileOperation operation, auto&) {
    if (operation == FileOperation::create) std::this_thread::sleep_for(milliseconds(5));
  };
  const TierCosts costs = open()->costs();
  EXPECT_GT(costs.put_time(4096), 4000);
  EXPECT_LT(costs.put_cost(4096), 2500) << "who sleeps spends nothing";
  EXPECT_GT(costs.put_alone(4096), 4000) << "but without a plan somebody waits";
  EXPECT_LT(costs.get_time(4096), 2500);
}

TEST_F(DiskCostsThread, AreThoseOfLargeFilesAndSmallOnes) {
  const TierCosts costs = open()->costs();
  for (const TransferCost* work : {&costs.put, &costs.get, &costs.remove}) {
    EXPECT_GT(work->cpu.each, 0);
    EXPECT_GT(work->time.each, 0);
    EXPECT_GT(work->cpu.byte, 0);
    EXPECT_GT(work->time.byte, 0);
  }
  EXPECT_GT(costs.put.caller, 0);
  EXPECT_LT(costs.put_cost(4096), costs.put_cost(1 << 20));
}

TEST_F(DiskCostsThread, FollowWhatIsMeasured) {
  const auto disk = open();
  const TierCosts before = disk->costs();
  files_.before = [](FileOperation operation, auto&) {
    if (operation == FileOperation::create) std::this_thread::sleep_for(milliseconds(3));
  };
  const at::Tensor x = at::ones({1 << 14});
  for (int i = 0; i < 100; ++i) {
    const auto copy = disk->put(x.storage(), {}, false);
    copy->finish_put();
  }
  EXPECT_GT(disk->costs().put_time(1 << 16), before.put_time(1 << 16) + 1500);
}

}  // namespace
}  // namespace reprise::testing
