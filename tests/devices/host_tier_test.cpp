// Memory of the host below an accelerator: the same bits within budgets of both, and by the device's clock never slower
// than without.
#include "torch/offload/host_tier.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "accelerator/accelerator.h"
#include "devices/device_training.h"
#include "reprise/store/store.h"
#include "reprise/torch/errors.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/counted_device.h"
#include "torch/memory/meter.h"

namespace reprise::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Three microseconds, and a nanosecond for 20 bytes; copies to the host and back for so many.
accelerator::Durations durations_with_copies(int bytes_in_a_nanosecond) {
  return [=](const accelerator::Kernel& kernel) {
    return nanoseconds(3000 + kernel.bytes / (kernel.name == "_copy_from" ? bytes_in_a_nanosecond : 20));
  };
}

class HostTier : public ::testing::Test {
 protected:
  HostTier() {
    accelerator::durations(durations_with_copies(20));
    (void)plain();
    accelerator::synchronize();
    at::getHostAllocator(accelerator::type)->empty_cache();
    at::getHostAllocator(accelerator::type)->reset_peak_stats();
  }
  ~HostTier() override {
    accelerator::durations({});
    accelerator::slow_down(microseconds(0));
    accelerator::fail_allocation_after(-1);
    accelerator::empty_cache();
    accelerator::capacity(accelerator::unlimited);
  }

  static const Outcome& plain() {
    static const Outcome outcome = train(small_gpt, nullptr);
    return outcome;
  }
  static at::HostStats pinned() { return at::getHostAllocator(accelerator::type)->get_stats(); }

  static SessionOptions within(int percent, Bytes host, milliseconds planning_time = milliseconds(0)) {
    SessionOptions options;
    options.device = device().str();
    options.budget = plain().peak * percent / 100;
    options.planning_time = planning_time;
    options.planning_share = std::numeric_limits<double>::infinity();
    options.host.bytes = host;
    return options;
  }

  // Of a step that follows a plan.
  static double planned_step(const Trained& trained, Session& session) {
    for (int i = 0; i < 8; ++i) {  // costs are told a step late, and settled after four of them
      (void)timed_step(trained, &session);
      session.wait_for_plan();
    }
    const double time = timed_step(trained, &session);
    EXPECT_TRUE(session.summary().followed_plan);
    return time;
  }
};

// ---- bits and bytes ------------------------------------------------------------------------------------------------

TEST_F(HostTier, ServesTheOnlinePolicyWhileTheDeviceIsBehind) {
  accelerator::slow_down(microseconds(20));
  Bytes put = 0;
  for (const int percent : {80, 60, 45, 35}) {
    SCOPED_TRACE(percent);
    const SessionOptions options = within(percent, plain().peak);
    Session session(options);
    const Outcome seen = train(small_gpt, &session);
    EXPECT_EQ(difference(plain(), seen), "");
    EXPECT_LE(seen.peak, options.budget.bytes());
    EXPECT_LE(session.summary().host_peak, options.host.bytes);
    put += session.summary().host_put_last_step;
  }
  EXPECT_GT(put, 0);
}

TEST_F(HostTier, IsInPlansAndServesThem) {
  for (const int percent : {80, 60, 45, 35}) {
    SCOPED_TRACE(percent);
    const SessionOptions options = within(percent, plain().peak, milliseconds(400));
    Session session(options);
    const Outcome seen = train(small_gpt, &session, {.steps = 5, .after_step = [&](int) { session.wait_for_plan(); }});
    EXPECT_EQ(difference(plain(), seen), "");
    EXPECT_LE(seen.peak, options.budget.bytes());
    const Summary summary = session.summary();
    EXPECT_TRUE(summary.followed_plan);
    EXPECT_GT(summary.host_put_last_step, 0);
    EXPECT_GT(summary.host_got_last_step, 0);
    const Tier tier = session.trace().value().tiers.back();
    EXPECT_EQ(tier.name, "host");
    EXPECT_TRUE(tier.duplex);
    EXPECT_TRUE(tier.overlaps());
    EXPECT_FALSE(tier.in_budget);
  }
}

// What is wide comes first, so that backward comes to it last, when there are all gradients of the deep part.
Trained wide_then_deep() {
  constexpr std::int64_t rows = 96, width = 192, times = 8;
  torch::manual_seed(5);
  const auto on_device = at::TensorOptions(device());
  Trained trained;
  trained.parameters.push_back(at::full({1}, 0.7f, on_device));
  for (int i = 0; i < 6; ++i) trained.parameters.push_back(at::randn({width, width}).mul(0.07).to(device()));
  for (const at::Tensor& parameter : trained.parameters) parameter.requires_grad_(true);
  trained.loss = [input = at::randn({rows, times * width}).to(device()), parameters = trained.parameters] {
    at::Tensor h = torch::sigmoid(torch::tanh(input * parameters[0])).view({rows, times, width}).sum(1);
    for (std::size_t i = 1; i < parameters.size(); ++i) h = torch::tanh(h.matmul(parameters[i]));
    return h.sum();
  };
  return trained;
}

TEST_F(HostTier, HasRoomForGradientsUntilBackwardIsOver) {
  const Trained trained = wide_then_deep();
  const auto gradients = [&](Session* session) {
    (void)timed_step(trained, session);
    std::vector<at::Tensor> bits;
    for (at::Tensor parameter : trained.parameters) {
      bits.push_back(parameter.grad().cpu());
      parameter.mutable_grad().reset();
    }
    accelerator::synchronize();
    return bits;
  };
  (void)gradients(nullptr);
  const Bytes level = accelerator::memory().live;
  accelerator::mark_peak();
  const std::vector<at::Tensor> expected = gradients(nullptr);
  accelerator::slow_down(microseconds(20));
  for (const int time : {0, 300}) {
    SessionOptions options = within(0, plain().peak, milliseconds(time));
    options.budget = level + (accelerator::memory().live_peak - level) * 3 / 4;
    Session session(options);
    for (int i = 0; i < 4; ++i) {
      const std::vector<at::Tensor> seen = gradients(&session);
      for (std::size_t k = 0; k < seen.size(); ++k) EXPECT_TRUE(at::equal(seen[k], expected[k])) << k;
      EXPECT_LE(session.summary().peak_last_step(), options.budget.bytes());
      EXPECT_GT(session.summary().host_got_last_step, 0);
      session.wait_for_plan();
    }
    options.host = {};
    Session without(options);
    EXPECT_THROW((void)gradients(&without), BudgetError);
  }
}

TEST_F(HostTier, KeepsToItsBytesAndToAllThatTheDeviceHas) {
  accelerator::empty_cache();
  for (const Bytes share : {4, 16, 64}) {
    SCOPED_TRACE(share);
    SessionOptions options = within(45, plain().peak / share, milliseconds(300));
    options.verify = Verify::never;  // what is compared is read through pinned memory, too
    accelerator::capacity(options.budget.bytes());
    const Bytes before = pinned().allocated_bytes.current;
    at::getHostAllocator(accelerator::type)->reset_peak_stats();
    Session session(options);
    const Outcome seen = train(small_gpt, &session, {.steps = 5, .after_step = [&](int) { session.wait_for_plan(); }});
    EXPECT_EQ(difference(plain(), seen), "");
    EXPECT_LE(accelerator::memory().reserved_peak, options.budget.bytes());
    EXPECT_LE(session.summary().host_peak, options.host.bytes);
    EXPECT_LE(pinned().allocated_bytes.peak - before, options.host.bytes) << "also of what is still being copied";
  }
}

TEST_F(HostTier, IsInTheBudgetOfTheCpuIfThereIsOne) {
  SessionOptions options = within(45, plain().peak, milliseconds(300));
  constexpr Bytes room = 16 << 20;  // kernels of the simulated device need some of it
  const Bytes cpu = internal::meter::live() + room;
  options.budgets = {{device().str(), options.budget}, {"cpu", cpu}};
  options.budget = no_limit;
  options.device = "";
  Session session(options);
  Bytes peak = 0;
  const Outcome seen = train(small_gpt, &session, {.steps = 5, .after_step = [&](int) {
                                                     session.wait_for_plan();
                                                     peak = std::max(peak, session.summary().devices[1].peak_last_step);
                                                   }});
  EXPECT_EQ(difference(plain(), seen), "");
  EXPECT_LE(peak, cpu);
  EXPECT_GT(session.summary().host_peak, 0);
  EXPECT_LE(session.summary().host_peak, room / 2) << "the program may need the rest";
}

TEST_F(HostTier, IsEmptyAfterItsSession) {
  const Bytes before = pinned().active_bytes.current;
  {
    Session session(within(45, plain().peak));
    EXPECT_EQ(difference(plain(), train(small_gpt, &session)), "");
  }
  accelerator::synchronize();
  EXPECT_EQ(pinned().active_bytes.current, before);
}

TEST_F(HostTier, ServesWhatStreamsHandToEachOther) {
  accelerator::slow_down(microseconds(200));
  const Outcome expected = train(two_streams, nullptr);
  for (const double share : {0.97, 0.9}) {
    SessionOptions options = within(100, expected.peak, milliseconds(200));
    options.budget = static_cast<Bytes>(share * static_cast<double>(expected.peak));
    Session session(options);
    EXPECT_EQ(difference(expected, train(two_streams, &session)), "") << share;
  }
}

TEST_F(HostTier, ServesRandomPrograms) {
  Bytes put = 0;
  int refused = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto make = [&] { return random_program(seed); };
    const reprise::testing::Run three{.steps = 3};
    const Outcome expected = train(make, nullptr, three);
    SessionOptions options = within(100, expected.peak, milliseconds(seed % 2 == 0 ? 0 : 50));
    options.budget = expected.level + (expected.peak - expected.level) * (40 + seed) / 100;
    Session session(options);
    try {
      EXPECT_EQ(difference(expected, train(make, &session, three)), "") << "seed " << seed;
    } catch (const BudgetError&) {
      ++refused;
    }
    put += session.summary().host_put_last_step;
  }
  EXPECT_GT(put, 0);
  EXPECT_LT(refused, 20);
}

TEST_F(HostTier, GoesOnAfterAnAllocationThatTheDeviceRefuses) {
  Session session(within(60, plain().peak, milliseconds(200)));
  for (std::int64_t at = 0; at < 400; at += 133) {
    try {
      const auto fail = [&](int step) { accelerator::fail_allocation_after(step == 1 ? at : -1); };
      EXPECT_EQ(difference(plain(), train(small_gpt, &session, {.before_step = fail})), "") << at;
    } catch (const BudgetError& error) {
      EXPECT_FALSE(error.facts().refused.empty());
    }
    accelerator::fail_allocation_after(-1);
    EXPECT_EQ(difference(plain(), train(small_gpt, &session)), "") << at;
  }
}

// ---- copies that are not what was put ----

class HostTierAlone : public HostTier {
 protected:
  HostTierAlone()
      : tier_(internal::HostTransferTier::open(1 << 20, internal::CountedDevices::of_process().at(device().str()),
                                               false)) {}
  ~HostTierAlone() override { accelerator::synchronize(); }

  static at::Tensor numbers() { return at::arange(4096, at::kFloat).to(device()); }
  [[nodiscard]] auto put(const at::Tensor& x, c10::Stream made_on, bool verify) const {
    const auto copy = tier_->put(x.storage(), made_on, verify);
    (void)tier_->drain_completed();
    copy->finish_put();
    return copy;
  }
  [[nodiscard]] static c10::Stream stream() { return internal::libtorch::current_stream_of_accelerator(device()); }

  const std::shared_ptr<internal::HostTransferTier> tier_;
};

TEST_F(HostTierAlone, ComparesWhatIsToBeVerified) {
  const at::Tensor x = numbers();
  for (const bool verify : {false, true}) {
    const auto copy = put(x, stream(), verify);
    const c10::Storage back = copy->contents();
    EXPECT_EQ(copy->verified(), verify);
    EXPECT_EQ(internal::libtorch::on_host(back), internal::libtorch::on_host(x.storage()));
  }
}

TEST_F(HostTierAlone, NamesTheTierIfAValueWasCopiedBeforeItWasComplete) {
  const c10::Stream another = c10::impl::VirtualGuardImpl(accelerator::type).getNewStream(device());
  at::Tensor x = numbers();
  accelerator::synchronize();
  accelerator::slow_down(milliseconds(2));
  for (int i = 0; i < 20; ++i) x.add_(1);
  const auto copy = put(x, another, true);  // the stream that made it is this one
  EXPECT_TRUE(copy->usable());
  try {
    (void)copy->contents();
    FAIL() << "nobody has compared it";
  } catch (const MismatchError& error) {
    EXPECT_EQ(error.facts().reloaded_from, "host");
    EXPECT_NE(std::string(error.what()).find("came back from the host with other bits"), std::string::npos);
  }
  EXPECT_THROW((void)copy->contents(), MismatchError) << "whoever asks is told";
  const at::Tensor y = numbers();
  const auto next = put(y, stream(), true);
  EXPECT_EQ(internal::libtorch::on_host(next->contents()), internal::libtorch::on_host(y.storage()));
}

TEST_F(HostTierAlone, SaysThatThereIsNoRoomWithoutSpeakingOfADisk) {
  const at::Tensor x = at::zeros({1 << 19}, at::TensorOptions(device()));
  const auto copy = put(x, stream(), false);
  EXPECT_FALSE(copy->usable());
  try {
    (void)copy->contents();
    FAIL() << "it is lost";
  } catch (const DiskError&) {
    FAIL() << "of a disk";
  } catch (const SessionError& error) {
    EXPECT_NE(std::string(error.what()).find("host.bytes"), std::string::npos);
  }
}

TEST_F(HostTier, VerifiesByTheRuleOfReplays) {
  for (const Verify verify : {Verify::never, Verify::always}) {
    SessionOptions options = within(45, plain().peak);
    options.verify = verify;
    Session session(options);
    EXPECT_EQ(difference(plain(), train(small_gpt, &session)), "");
    EXPECT_GT(session.summary().host_got_last_step, 0);
    EXPECT_EQ(session.summary().verified > 0, verify == Verify::always);
  }
}

// ---- time ----------------------------------------------------------------------------------------------------------

TEST_F(HostTier, IsNeverSlowerThanWithoutIt) {
  const Trained trained = small_gpt();
  for (const int bytes_in_a_nanosecond : {20, 5}) {
    accelerator::durations(durations_with_copies(bytes_in_a_nanosecond));
    (void)timed_step(trained, nullptr);
    for (const int percent : {80, 60, 45, 35}) {
      SCOPED_TRACE(std::to_string(percent) + " %, " + std::to_string(bytes_in_a_nanosecond) + " bytes in a nanosecond");
      Session with(within(percent, plain().peak, milliseconds(400))), without(within(percent, 0, milliseconds(400)));
      const double time_with = planned_step(trained, with), time_without = planned_step(trained, without);
      EXPECT_LE(time_with, time_without * 1.003);
      if (bytes_in_a_nanosecond == 20) EXPECT_GT(with.summary().host_put_last_step, 0);
    }
  }
}

TEST_F(HostTier, TakesWhatPlansPromise) {
  const Trained trained = small_gpt();
  (void)timed_step(trained, nullptr);
  const double plain_time = timed_step(trained, nullptr);
  for (const int percent : {60, 35}) {
    SCOPED_TRACE(percent);
    Session session(within(percent, plain().peak, milliseconds(400)));
    const double measured = planned_step(trained, session) / plain_time - 1;
    EXPECT_NEAR(measured, *session.summary().promised_overhead, 0.01 + 0.1 * *session.summary().promised_overhead);
  }
}

TEST_F(HostTier, IsNotUsedIfItIsSlow) {
  accelerator::durations([](const accelerator::Kernel& kernel) {
    return kernel.name == "_copy_from" ? nanoseconds(milliseconds(100)) : nanoseconds(3000 + kernel.bytes / 20);
  });
  const Trained trained = small_gpt();
  Session session(within(45, plain().peak, milliseconds(300)));
  (void)planned_step(trained, session);
  EXPECT_EQ(session.summary().host_put_last_step, 0);
}

// ---- options -------------------------------------------------------------------------------------------------------

TEST_F(HostTier, IsRefusedWithoutAnAcceleratorThatIsNamed) {
  for (const char* const name : {"cpu", ""}) {
    SessionOptions options;
    options.device = name;
    options.host.bytes = 1 << 20;
    EXPECT_THROW(Session{options}, BadOption) << name;
  }
  SessionOptions options = within(50, -1);
  EXPECT_THROW(Session{options}, BadOption);
}

}  // namespace
}  // namespace reprise::testing
