// Faults of an accelerator: it is out of memory at every allocation in turn. Each ends in an error that says so, and
// the session goes on with the right bits in the next step.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <string>

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
    SessionOptions forgetting = online, planned = online;
    forgetting.forget_everything = true;
    online.budget = planned.budget = expected_.level + (expected_.peak - expected_.level) * 7 / 10;
    planned.planning_time = std::chrono::milliseconds(50);
    planned.planning_share = std::numeric_limits<double>::infinity();
    regimes_ = {{"online", online}, {"everything is forgotten", forgetting}, {"planned", planned}};
  }
  ~DeviceFaults() override {
    accelerator::fail_allocation_after(-1);
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
  EXPECT_GT(errors, 0) << "something is allocated when there is nothing to forget";
}

}  // namespace
}  // namespace reprise::testing
