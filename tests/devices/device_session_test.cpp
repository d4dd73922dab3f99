// Sessions on an accelerator: the same bits inside a budget of its bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "accelerator/accelerator.h"
#include "devices/device_training.h"
#include "reprise/torch/measurement.h"

namespace reprise::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

SessionOptions on_device(Bytes budget = no_limit) {
  SessionOptions options;
  options.device = device().str();
  options.budget = budget;
  options.planning_time = milliseconds(0);
  return options;
}

const Outcome& plain_gpt() {
  static const Outcome outcome = train(small_gpt, nullptr);
  return outcome;
}

class DeviceSession : public ::testing::Test {
 protected:
  ~DeviceSession() override {
    accelerator::slow_down(microseconds(0));
    accelerator::empty_cache();
    accelerator::capacity(accelerator::unlimited);
  }
};

// ---- budgets -------------------------------------------------------------------------------------------------------

class BudgetOfADevice : public DeviceSession, public ::testing::WithParamInterface<int> {
 protected:
  [[nodiscard]] static Bytes budget() { return plain_gpt().peak * GetParam() / 100; }
};

TEST_P(BudgetOfADevice, IsKeptWithTheSameBitsByTheOnlinePolicyWhileTheDeviceIsBehind) {
  accelerator::slow_down(microseconds(20));
  Session session(on_device(budget()));
  const Outcome seen = train(small_gpt, &session);
  EXPECT_EQ(difference(plain_gpt(), seen), "");
  EXPECT_LE(seen.peak, budget());
  EXPECT_GT(session.summary().verified, 0);
}

TEST_P(BudgetOfADevice, IsKeptWithTheSameBitsByPlans) {
  SessionOptions options = on_device(budget());
  options.planning_time = milliseconds(500);
  Session session(options);
  const Outcome seen = train(small_gpt, &session, {.after_step = [&](int) { session.wait_for_plan(); }});
  EXPECT_EQ(difference(plain_gpt(), seen), "");
  EXPECT_LE(seen.peak, budget());
  EXPECT_TRUE(session.summary().followed_plan);
}

TEST_P(BudgetOfADevice, IsAllThatTheDeviceHas) {
  const Bytes budget = BudgetOfADevice::budget();
  (void)plain_gpt();
  accelerator::empty_cache();
  accelerator::capacity(budget);
  Session session(on_device(budget));
  const Outcome seen = train(small_gpt, &session);
  EXPECT_EQ(difference(plain_gpt(), seen), "");
  EXPECT_LE(accelerator::memory().reserved_peak, budget);
}

INSTANTIATE_TEST_SUITE_P(OfThePlainPeak, BudgetOfADevice, ::testing::Values(80, 60, 45, 35, 30),
                         [](const auto& percent) { return std::to_string(percent.param) + "percent"; });

TEST_F(DeviceSession, CountsWhatWasAllocatedBeforeItBegan) {
  const at::Tensor before = at::empty({1 << 20}, device());
  Session session(on_device());
  const auto step = session.step();
  EXPECT_EQ(session.summary().live(), accelerator::memory().live);
}

TEST_F(DeviceSession, SaysWhichDeviceHasNoRoom) {
  Session session(on_device(plain_gpt().peak / 10));
  try {
    (void)train(small_gpt, &session);
    FAIL() << "it cannot fit";
  } catch (const BudgetError& error) {
    EXPECT_EQ(error.facts().device, device().str());
    EXPECT_NE(std::string(error.what()).find("on " + device().str()), std::string::npos) << error.what();
  }
  session.budget(plain_gpt().peak);
  EXPECT_EQ(difference(plain_gpt(), train(small_gpt, &session)), "");
}

// ---- exactness -----------------------------------------------------------------------------------------------------

TEST_F(DeviceSession, RecomputesEverythingWithTheSameBits) {
  SessionOptions options = on_device();
  options.evict_everything = true;
  options.verify = Verify::always;
  Session session(options);
  EXPECT_EQ(difference(plain_gpt(), train(small_gpt, &session)), "");
  EXPECT_GT(session.summary().verified, 100);
}

// Of stream and memory: a value that one stream recomputes is used on another, and freed while that one is behind.
// The cell of an LSTM is one operator on accelerators, which the CPU has no kernel for.
TEST_F(DeviceSession, RecomputesWhatOperatorsMakeThatOnlyAcceleratorsHave) {
  const auto lstm = [] {
    torch::manual_seed(1);
    torch::nn::LSTM model(torch::nn::LSTMOptions(16, 16).num_layers(2));
    model->to(device());
    const at::Tensor x = torch::randn({6, 8, 16}).to(device());
    return Trained{model->parameters(), [=]() mutable { return std::get<0>(model->forward(x)).pow(2).mean(); }};
  };
  SessionOptions options = on_device();
  options.evict_everything = true;
  options.verify = Verify::always;
  Session session(options);
  EXPECT_EQ(difference(train(lstm, nullptr), train(lstm, &session)), "");
  const Trace trace = session.trace().value();
  const auto cells = std::count_if(trace.operators.begin(), trace.operators.end(),
                                   [](const Operator& op) { return op.name == "aten::_thnn_fused_lstm_cell"; });
  EXPECT_EQ(cells, 2 * 6);
  EXPECT_GE(session.summary().replays, cells);
}

TEST_F(DeviceSession, RecomputesWhatStreamsHandToEachOther) {
  accelerator::slow_down(microseconds(200));
  const Outcome plain = train(two_streams, nullptr);
  ASSERT_EQ(difference(plain, train(two_streams, nullptr)), "");
  for (const double share : {0.97, 0.9}) {
    SessionOptions options = on_device(static_cast<Bytes>(share * static_cast<double>(plain.peak)));
    options.policy = [](const PolicyOperator&) { return Choice::evict; };
    options.verify = Verify::never;
    Session session(options);
    EXPECT_EQ(difference(plain, train(two_streams, &session)), "") << share;
    EXPECT_GT(session.summary().replays, 0);
  }
}

TEST_F(DeviceSession, TrainsRandomProgramsWithTheSameBits) {
  int replays = 0, refused = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto make = [&] { return random_program(seed); };
    const reprise::testing::Run two{.steps = 2};
    const Outcome plain = train(make, nullptr, two);
    SessionOptions options = on_device(plain.level + (plain.peak - plain.level) * (40 + seed) / 100);
    if (seed % 3 == 0) options.verify = Verify::always;
    options.evict_everything = seed % 5 == 0;
    if (options.evict_everything) options.budget = no_limit;
    Session session(options);
    try {
      EXPECT_EQ(difference(plain, train(make, &session, two)), "") << "seed " << seed;
    } catch (const BudgetError&) {
      ++refused;
    }
    replays += session.summary().replays > 0 ? 1 : 0;
  }
  EXPECT_GT(replays, 20);
  EXPECT_LT(refused, 40);
}

TEST_F(DeviceSession, KeepsValuesOfTheHost) {
  const auto make = [] {
    const at::Tensor weight = torch::randn({64, 64}).requires_grad_(),
                     far = torch::randn({64, 64}).to(device()).requires_grad_();
    const at::Tensor x = torch::randn({256, 64});
    return Trained{{weight, far}, [=] {
                     const at::Tensor here = torch::gelu(torch::linear(x, weight));
                     const at::Tensor there = torch::gelu(torch::tanh(torch::linear(here.to(device()), far)));
                     return there.cpu().pow(2).mean() + here.mean();
                   }};
  };
  const Outcome plain = train(make, nullptr);
  SessionOptions options = on_device();
  options.evict_everything = true;
  Session session(options);
  EXPECT_EQ(difference(plain, train(make, &session)), "");
  const Summary summary = session.summary();
  EXPECT_GT(summary.replays, 0);
  EXPECT_GT(summary.other_devices, 0);
}

TEST_F(DeviceSession, OfTheCpuKeepsValuesOfTheDevice) {
  (void)Session(on_device());  // its bytes are counted from now on
  SessionOptions options;
  options.device = "cpu";
  options.evict_everything = true;
  Session session(options);
  EXPECT_EQ(difference(plain_gpt(), train(small_gpt, &session)), "");
  EXPECT_GT(session.summary().other_devices, 0);
}

// ---- costs ---------------------------------------------------------------------------------------------------------

TEST_F(DeviceSession, TakesTheCostsThatTheDeviceMeasures) {
  accelerator::durations([](const accelerator::Kernel& kernel) {
    return std::chrono::nanoseconds(kernel.name.starts_with("tanh") ? milliseconds(5) : milliseconds(1));
  });
  Session session(on_device());
  (void)train(two_streams, &session, {.steps = 8, .after_step = [](int) { accelerator::synchronize(); }});
  accelerator::durations({});
  const auto trace = session.trace();
  ASSERT_TRUE(trace);
  int seen = 0;
  for (const Operator& op : trace->operators) {
    if (!op.name.starts_with("aten::tanh")) continue;
    EXPECT_NEAR(op.cost, 5000, 1) << "microseconds";
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

TEST_F(DeviceSession, KeepsWhatMayGiveOtherBitsUnlessAlgorithmsAreDeterministic) {
  const auto make = [] {
    const at::Tensor weight = torch::randn({64, 64}).to(device()).requires_grad_();
    return Trained{{weight}, [=] { return torch::tanh(torch::cumsum(torch::tanh(weight), 0)).pow(2).mean(); }};
  };
  SessionOptions options = on_device();
  options.evict_everything = true;
  for (const bool deterministic : {false, true}) {
    const Outcome plain = train(make, nullptr);
    at::globalContext().setDeterministicAlgorithms(deterministic, true);
    Session session(options);
    EXPECT_EQ(difference(plain, train(make, &session)), "");
    at::globalContext().setDeterministicAlgorithms(false, false);
    const auto& kept = session.summary().kept;
    EXPECT_EQ(std::none_of(kept.begin(), kept.end(), [](const auto& op) { return op.op == "aten::cumsum"; }),
              deterministic);
  }
}

// ---- faults --------------------------------------------------------------------------------------------------------

TEST_F(DeviceSession, GoesOnAfterAnAllocationThatTheDeviceRefuses) {
  Session session(on_device(plain_gpt().peak * 6 / 10));
  int refused = 0;
  for (std::int64_t at = 0; at < 400; at += 133) {
    try {
      const auto fail = [&](int step) { accelerator::fail_allocation_after(step == 1 ? at : -1); };
      EXPECT_EQ(difference(plain_gpt(), train(small_gpt, &session, {.before_step = fail})), "") << at;
    } catch (const BudgetError& error) {
      EXPECT_FALSE(error.facts().refused.empty());
      ++refused;
    }
    accelerator::fail_allocation_after(-1);
    EXPECT_EQ(difference(plain_gpt(), train(small_gpt, &session)), "") << at;
  }
  EXPECT_LT(refused, 4) << "it is pressed and asked again";
}

// ---- options -------------------------------------------------------------------------------------------------------

TEST_F(DeviceSession, RefusesDevicesThatItCannotCount) {
  for (const char* const name : {"nonsense", "cuda:0", "meta", "privateuseone:7"}) {
    SessionOptions options;
    options.device = name;
    EXPECT_THROW(Session{options}, BadOption) << name;
  }
}

TEST_F(DeviceSession, RefusesWhatOnlyTheCpuHas) {
  SessionOptions options = on_device();
  options.disk.folder = ::testing::TempDir();
  EXPECT_THROW(Session{options}, BadOption);
  Session session(on_device());
  EXPECT_THROW((void)session.measure([] {}), BadOption);
}

}  // namespace
}  // namespace reprise::testing
