// Faults of an accelerator: it is out of memory at every allocation in turn, every kernel in turn fails, a stream is
// destroyed. Each ends in an error that says so, and the session goes on with the right bits in the next step.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "accelerator/accelerator.h"
#include "devices/device_training.h"

namespace reprise::testing {
namespace {

// Nothing that a broken step would leave changed, besides gradients and generator.
Trained small_net() {
  const auto far = [](at::Tensor tensor) { return tensor.to(device()); };
  const at::Tensor x = far(torch::randn({64, 32})), first = far(torch::randn({64, 32}) * 0.2).requires_grad_(),
                   second = far(torch::randn({64, 64}) * 0.2).requires_grad_(),
                   third = far(torch::randn({1, 64}) * 0.2).requires_grad_();
  return {{first, second, third}, [=] {
            at::Tensor h = torch::gelu(torch::linear(x, first));
            h = torch::dropout(torch::tanh(torch::linear(h, second)), 0.3, true);
            h = torch::tanh(torch::gelu(torch::linear(h, second)));
            return torch::linear(h, third).pow(2).mean();
          }};
}

class DeviceFaults : public ::testing::Test {
 protected:
  DeviceFaults() {
    expected_ = train(small_net, nullptr, {.steps = 1});
    SessionOptions online;
    online.device = device().str();
    online.planning_time = std::chrono::milliseconds(0);
    SessionOptions evicting = online, planned = online;
    evicting.evict_everything = true;
    online.budget = planned.budget = expected_.level + (expected_.peak - expected_.level) * 7 / 10;
    planned.planning_time = std::chrono::milliseconds(50);
    planned.planning_share = std::numeric_limits<double>::infinity();
    regimes_ = {{"online", online}, {"everything is evicted", evicting}, {"planned", planned}};
  }
  ~DeviceFaults() override {
    accelerator::fail_allocation_after(-1);
    accelerator::fail_kernel_after(-1);
    EXPECT_NO_THROW(accelerator::synchronize());
  }

  // The text of what was thrown, or empty if the step has the right bits.
  std::string step(Session& session) const {
    std::string error;
    try {
      EXPECT_EQ(difference(expected_, train(small_net, &session, {.steps = 1})), "");
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
    session.wait_for_plan();
    return error;
  }

  // In every regime, over and over with one more time of whatever it is before `fault` happens, until it does not
  // happen any more. Returns how often there was an error, which has one of these texts.
  int in_turn(const std::function<void(std::int64_t)>& fault, const std::function<bool(const std::string&)>& is_named) {
    constexpr std::int64_t most = 1000;
    int errors = 0;
    for (const auto& [name, options] : regimes_) {
      SCOPED_TRACE(name);
      Session session(options);
      EXPECT_EQ(step(session), "");
      const std::int64_t all = happens_in([&] { EXPECT_EQ(step(session), ""); });
      EXPECT_GT(all, 20);
      EXPECT_LT(all, most);
      for (std::int64_t at = 0; at < all && !HasFailure(); ++at) {
        SCOPED_TRACE("number " + std::to_string(at));
        fault(at);
        const std::string error = step(session);
        fault(-1);
        if (!error.empty()) {
          EXPECT_TRUE(is_named(error)) << error;
          ++errors;
        }
        EXPECT_EQ(step(session), "") << "the next step";
      }
    }
    return errors;
  }

  std::function<std::int64_t(const std::function<void()>&)> happens_in;

  Outcome expected_;
  std::vector<std::pair<std::string, SessionOptions>> regimes_;
};

TEST_F(DeviceFaults, OutOfMemoryAtAnyAllocationIsABudgetErrorOrNoneAtAll) {
  happens_in = [](const std::function<void()>& work) {
    const std::int64_t before = accelerator::counts().allocations;
    work();
    return accelerator::counts().allocations - before;
  };
  const int errors = in_turn(accelerator::fail_allocation_after, [](const std::string& error) {
    return error.find("[budget] ") != std::string::npos || error.find("out of memory") != std::string::npos;
  });
  EXPECT_GT(errors, 0) << "something is allocated when there is nothing to evict";
}

// What a kernel throws is told by whoever next waits for the device. That is the program, when it looks at the loss, or
// Reprise, when it reads what it is going to compare.
TEST_F(DeviceFaults, AKernelThatFailsIsItsOwnErrorWhereverItIs) {
  happens_in = [](const std::function<void()>& work) {
    const std::int64_t before = accelerator::counts().kernels;
    work();
    return accelerator::counts().kernels - before;
  };
  const int errors = in_turn(accelerator::fail_kernel_after, [](const std::string& error) {
    return error.find("[accelerator] the kernel") != std::string::npos;
  });
  EXPECT_GT(errors, 100) << "nearly every kernel matters";
}

// Nobody asks for what was evicted, so nothing of Reprise's could tell it.
TEST_F(DeviceFaults, AKernelThatFailsIsAnErrorOfTheProgramThoughRepriseHasWaitedForTheDeviceBefore) {
  SessionOptions options = regimes_[1].second;
  ASSERT_TRUE(options.evict_everything);
  options.verify = Verify::always;
  Session session(options);
  const at::Tensor weight = torch::ones({64}).to(device()).requires_grad_(), other = torch::ones({64}).to(device());
  for (int i = 0; i < 3; ++i) {
    {
      const Step step = session.step();
      accelerator::fail_kernel_after(0);
      other.sin_();
      at::Tensor h = weight;
      for (int k = 0; k < 4; ++k) h = torch::tanh(torch::gelu(h));
    }
    EXPECT_THROW(accelerator::synchronize(), c10::Error) << i;
  }
}

// ---- streams -------------------------------------------------------------------------------------------------------

// A model with a part on a stream of its own, a new one in every step, which may be destroyed between forward and
// backward.
class DestroyedStream : public DeviceFaults, public ::testing::WithParamInterface<bool> {
 protected:
  static void hand_over(const at::Tensor& tensor, c10::Stream from, c10::Stream to) {
    c10::Event made(accelerator::type);
    made.record(from);
    made.block(to);
    c10::impl::VirtualGuardImpl(accelerator::type).recordDataPtrOnStream(tensor.storage().data_ptr(), to);
  }

  // With a parameter the part has nodes in backward, which run on its stream; without it has none.
  static Trained with_a_part_besides(bool parameter_besides, const bool& destroys) {
    const auto far = [](at::Tensor tensor) { return tensor.to(device()); };
    const at::Tensor x = far(torch::randn({64, 64})), besides = far(torch::randn({64, 64}) * 0.2),
                     weight = far(torch::randn({64, 64}) * 0.2).requires_grad_();
    std::vector<at::Tensor> parameters{weight};
    if (parameter_besides) parameters.push_back(besides.requires_grad_());
    return {parameters, [=, &destroys] {
              const c10::impl::VirtualGuardImpl guard(accelerator::type);
              const c10::Stream main = guard.getStream(device()), own = guard.getNewStream(device());
              at::Tensor part;
              hand_over(x, main, own);
              {
                const c10::StreamGuard on(own);
                part = torch::gelu(torch::tanh(torch::linear(x, besides)));
              }
              hand_over(part, own, main);
              at::Tensor h = torch::tanh(torch::linear(part, weight));
              for (int i = 0; i < 3; ++i) h = torch::tanh(torch::gelu(torch::linear(h * part, weight)));
              const at::Tensor loss = h.pow(2).mean();
              if (destroys) accelerator::destroy(own);
              return loss;
            }};
  }
};

TEST_P(DestroyedStream, IsItsOwnErrorIfBackwardNeedsItAndElseNone) {
  const bool needed = GetParam();
  bool destroys = false;
  const auto make = [&] { return with_a_part_besides(needed, destroys); };
  const Outcome expected = train(make, nullptr, {.steps = 2});
  const Bytes budget = expected.level + (expected.peak - expected.level) * 7 / 10;
  for (auto& [name, options] : regimes_) {
    SCOPED_TRACE(name);
    if (options.budget != no_limit) options.budget = budget;
    Session session(options);
    const auto steps = [&] {
      std::string error;
      try {
        const auto wait = [&](int) { session.wait_for_plan(); };
        EXPECT_EQ(difference(expected, train(make, &session, {.steps = 2, .after_step = wait})), "");
      } catch (const std::exception& thrown) {
        error = thrown.what();
      }
      return error;
    };
    for (int i = 0; i < 3; ++i) {
      destroys = false;
      EXPECT_EQ(steps(), "") << "undisturbed, " << i;
      EXPECT_GT(session.summary().replays, 0);
      destroys = true;
      const std::string error = steps();
      if (needed) {
        EXPECT_NE(error.find("was destroyed"), std::string::npos) << error;
      } else {
        EXPECT_EQ(error, "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, DestroyedStream, ::testing::Bool(),
                         [](const auto& needed) { return needed.param ? "RunOnIt" : "DoNotRunOnIt"; });

}  // namespace
}  // namespace reprise::testing
