// Sessions with several devices, and sessions that find the device where the parameters are.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <optional>

#include "accelerator/accelerator.h"
#include "devices/device_training.h"
#include "libtorch/device_check.h"
#include "reprise/torch/checkpoint.h"
#include "reprise/torch/measurement.h"

namespace reprise::testing {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t rows = 1024, width = 64;

c10::Device other_device() {
  return {accelerator::type, static_cast<c10::DeviceIndex>(device().index() + 1)};
}

// Blocks of four operators, each on the device of its weight; activations are handed on from device to device.
Trained blocks_on(const std::vector<c10::Device>& devices) {
  std::vector<at::Tensor> weights;
  for (const c10::Device on : devices) weights.push_back((torch::randn({width, width}) * 0.1).to(on).requires_grad_());
  const at::Tensor x = torch::randn({rows, width}).to(devices.front());
  return {weights, [=] {
            at::Tensor h = x;
            for (const at::Tensor& weight : weights) {
              h = torch::layer_norm(h.to(weight.device()), {width});
              h = torch::dropout(torch::gelu(torch::linear(h, weight)), 0.2, true) + torch::tanh(h);
            }
            return h.pow(2).mean();
          }};
}

Trained on_cpu_and_device() {
  const c10::Device cpu(c10::kCPU);
  return blocks_on({cpu, cpu, cpu, device(), device(), device(), cpu, cpu, device(), device()});
}

Trained on_two_devices() {
  return blocks_on({device(), device(), device(), other_device(), other_device(), other_device(), device()});
}

SessionOptions within(std::vector<DeviceBudget> budgets) {
  SessionOptions options;
  options.budgets = std::move(budgets);
  options.planning_time = milliseconds(0);
  return options;
}

// What each of two devices needs if nothing is evicted, in the order of the names.
struct Needs {
  std::string one, two;
  Outcome plain;
  std::vector<DeviceSummary> devices;

  // This share of what a step takes beside what is there between steps.
  [[nodiscard]] std::vector<DeviceBudget> share(double of_one, double of_two) const {
    return {{one, at(0, of_one)}, {two, at(1, of_two)}};
  }
  [[nodiscard]] Bytes at(std::size_t number, double share) const {
    const auto& [device, budget, live, last, peak, evicted] = devices[number];
    return live + static_cast<Bytes>(share * static_cast<double>(peak - live));
  }
};

Needs needs_of(const MakeTrained& make, const std::string& one, const std::string& two) {
  Session session(within({{one}, {two}}));
  Needs needs{one, two, train(make, nullptr), {}};
  EXPECT_EQ(difference(needs.plain, train(make, &session,
                                          {.after_step =
                                               [&](int) {
                                                 const auto now = session.summary().devices;
                                                 if (needs.devices.empty()) needs.devices = now;
                                                 for (std::size_t i = 0; i < now.size(); ++i) {
                                                   needs.devices[i].peak = now[i].peak;
                                                   needs.devices[i].live = std::max(needs.devices[i].live, now[i].live);
                                                 }
                                               }})),
            "");
  return needs;
}

void expect_within(const Session& session, const std::vector<DeviceBudget>& budgets) {
  const Summary summary = session.summary();
  ASSERT_EQ(summary.devices.size(), budgets.size());
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    EXPECT_EQ(summary.devices[i].device, budgets[i].device);
    EXPECT_EQ(summary.devices[i].budget, budgets[i].budget.bytes());
    EXPECT_LE(summary.devices[i].peak, budgets[i].budget.bytes()) << budgets[i].device;
    EXPECT_GT(summary.devices[i].evicted_last_step, 0) << budgets[i].device;
  }
  EXPECT_EQ(summary.devices.front().device, budgets.front().device);
  EXPECT_EQ(session.trace().value().name, "session on " + budgets.front().device);
  EXPECT_EQ(summary.peak(), summary.devices.front().peak);
  EXPECT_EQ(summary.other_devices, 0);
}

// ---- several -------------------------------------------------------------------------------------------------------

class SeveralDevices : public ::testing::TestWithParam<bool> {
 protected:
  // Online, or by plans for the first of them.
  static void train_within(const MakeTrained& make, const Needs& needs, const std::vector<DeviceBudget>& budgets) {
    SessionOptions options = within(budgets);
    if (GetParam()) options.planning_time = milliseconds(500);
    Session session(options);
    const auto wait = [&](int) { session.wait_for_plan(); };
    EXPECT_EQ(difference(needs.plain, train(make, &session, {.after_step = wait})), "");
    expect_within(session, budgets);
    EXPECT_EQ(session.summary().followed_plan, GetParam());
  }
};

TEST_P(SeveralDevices, KeepBothBudgetsOfAModelOnTheCpuAndADevice) {
  const Needs needs = needs_of(on_cpu_and_device, device().str(), "cpu");
  train_within(on_cpu_and_device, needs, needs.share(0.5, 0.6));
}

TEST_P(SeveralDevices, ArePlannedForTheCpuIfThatIsNamedFirst) {
  const Needs needs = needs_of(on_cpu_and_device, "cpu", device().str());
  train_within(on_cpu_and_device, needs, needs.share(0.6, 0.5));
}

TEST_P(SeveralDevices, KeepTheBudgetsOfTwoDevices) {
  const Needs needs = needs_of(on_two_devices, device().str(), other_device().str());
  train_within(on_two_devices, needs, needs.share(0.5, 0.5));
}

INSTANTIATE_TEST_SUITE_P(Decided, SeveralDevices, ::testing::Bool(),
                         [](const auto& planned) { return planned.param ? "ByPlans" : "Online"; });

TEST(SeveralDevices, EvictOnlyWhereThereIsPressure) {
  const Needs needs = needs_of(on_cpu_and_device, device().str(), "cpu");
  Session session(within({{device().str(), needs.at(0, 0.5)}, {"cpu", needs.at(1, 1.5)}}));
  EXPECT_EQ(difference(needs.plain, train(on_cpu_and_device, &session)), "");
  EXPECT_GT(session.summary().devices[0].evicted_last_step, 0);
  EXPECT_EQ(session.summary().devices[1].evicted_last_step, 0);
  session.budget(device().str(), needs.at(0, 1.5));
  session.budget("cpu", needs.at(1, 0.6));
  EXPECT_EQ(difference(needs.plain, train(on_cpu_and_device, &session)), "");
  EXPECT_EQ(session.summary().devices[0].evicted_last_step, 0);
  EXPECT_GT(session.summary().devices[1].evicted_last_step, 0);
  EXPECT_THROW(session.budget(other_device().str(), 1), BadOption) << "it is no device of this session";
}

TEST(SeveralDevices, RecomputeEverythingWithTheSameBits) {
  SessionOptions options = within({{device().str()}, {"cpu"}});
  options.evict_everything = true;
  options.verify = Verify::always;
  Session session(options);
  EXPECT_EQ(difference(train(on_cpu_and_device, nullptr), train(on_cpu_and_device, &session)), "");
  EXPECT_GT(session.summary().verified, 100);
}

TEST(SeveralDevices, SayWhichOfThemHasNoRoom) {
  const Needs needs = needs_of(on_two_devices, device().str(), other_device().str());
  Session session(within({{needs.one, needs.at(0, 2)}, {needs.two, needs.at(1, 0)}}));
  try {
    (void)train(on_two_devices, &session);
    FAIL() << "it cannot fit";
  } catch (const BudgetError& error) {
    EXPECT_EQ(error.facts().device, needs.two);
  }
}

// Plans are made for the first, and what they say is no advice for another.
TEST(SeveralDevices, SayOfTheFirstAloneWhichBudgetWillDo) {
  const Needs needs = needs_of(on_two_devices, other_device().str(), device().str());  // a step begins on the second
  SessionOptions options = within({{needs.one, needs.at(0, 2)}, {needs.two, needs.at(1, 2)}});
  options.planning_time = milliseconds(300);
  options.planning_share = std::numeric_limits<double>::infinity();
  Session session(options);
  (void)train(on_two_devices, &session);
  const auto error = [&]() -> std::optional<BudgetError> {
    try {
      (void)train(on_two_devices, &session);
      return std::nullopt;
    } catch (const BudgetError& error) {
      return error;
    }
  };
  session.budget(needs.one, needs.at(0, 0.05));
  ASSERT_TRUE(error());
  session.wait_for_plan();
  const auto first = error();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->facts().device, needs.one);
  EXPECT_TRUE(first->facts().smallest_feasible) << first->what();
  session.budget(needs.two, needs.at(1, 0));
  const auto second = error();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->facts().device, needs.two);
  EXPECT_FALSE(second->facts().smallest_feasible) << second->what();
  EXPECT_FALSE(second->facts().floor) << second->what();
}

TEST(SeveralDevices, AreRefusedIfTheyContradictEachOther) {
  const std::string name = device().str();
  const auto refused = [](SessionOptions options, const std::string& because) {
    try {
      const Session session(std::move(options));
      FAIL() << because;
    } catch (const BadOption& error) {
      EXPECT_NE(std::string(error.what()).find(because), std::string::npos) << error.what();
    }
  };
  refused(within({{name, 1 << 20}, {"cpu"}, {name, 2 << 20}}), "must have one only");
  refused(within({{name, -5}}), "-5}: the bytes must not be negative");
  refused(within({{"", 5}}), "it must name a device");
  refused(within({{"cpu"}, {"privateuseone:7"}}), "there is no such device");
  SessionOptions both = within({{name, 1 << 20}});
  both.budget = 7;
  refused(both, "option budget is 7");
  both.budget = no_limit;
  both.device = name;
  refused(both, "option device is '" + name);
  Session session(within({{"cpu"}, {name}}));
  EXPECT_THROW((void)session.measure([] {}), BadOption);
}

// ---- none named ----------------------------------------------------------------------------------------------------

TEST(DeviceOfTheParameters, IsTakenIfNoneIsNamed) {
  const Outcome plain = train(small_gpt, nullptr);
  SessionOptions options;
  options.budget = plain.peak * 6 / 10;
  options.planning_time = milliseconds(500);
  Session session(options);
  const Outcome seen = train(small_gpt, &session, {.after_step = [&](int) { session.wait_for_plan(); }});
  EXPECT_EQ(difference(plain, seen), "");
  EXPECT_LE(seen.peak, options.budget.bytes());
  EXPECT_EQ(session.summary().devices.front().device, device().str());
  EXPECT_TRUE(session.summary().followed_plan);
}

// All that reads a parameter is in regions, which have a recording of their own until the device is known.
TEST(DeviceOfTheParameters, IsFoundInsideOfACheckpoint) {
  const auto make = [](bool checkpoints) {
    const Trained plain = blocks_on(std::vector<c10::Device>(4, device()));
    if (!checkpoints) return plain;
    return Trained{plain.parameters, [=] { return checkpoint([&](int) { return plain.loss(); }, 0); }};
  };
  const Outcome plain = train([&] { return make(false); }, nullptr);
  SessionOptions options;
  options.budget = plain.peak * 7 / 10;
  options.planning_time = milliseconds(0);
  Session session(options);
  EXPECT_EQ(difference(plain, train([&] { return make(true); }, &session)), "");
  EXPECT_EQ(session.summary().devices.front().device, device().str());
  EXPECT_LE(session.summary().peak_last_step(), options.budget.bytes());
}

TEST(DeviceOfTheParameters, IsTheCpuAlsoWhereADeviceIsInUse) {
  const at::Tensor in_use = at::empty({1024}, device());
  const auto make = [] { return blocks_on(std::vector<c10::Device>(6, c10::Device(c10::kCPU))); };
  const Outcome plain = train(make, nullptr);
  Session measured;
  (void)train(make, &measured);
  const Summary summary = measured.summary();
  EXPECT_EQ(summary.devices.front().device, "cpu");
  SessionOptions options;
  options.budget = summary.live() + (summary.peak() - summary.live()) * 6 / 10;
  options.planning_time = milliseconds(0);
  Session session(options);
  EXPECT_EQ(difference(plain, train(make, &session)), "");
  EXPECT_EQ(session.summary().devices.front().device, "cpu");
  EXPECT_LE(session.summary().peak(), options.budget.bytes());
  EXPECT_GT(session.summary().evicted_last_step(), 0);
  EXPECT_THROW((void)Session().measure([] {}), BadOption) << "nobody knows whether the step is the CPU's";
}

TEST(DeviceOfTheParameters, IsAskedForIfThereAreTwo) {
  SessionOptions options;
  options.budget = std::int64_t{1} << 32;
  Session session(options);
  try {
    (void)train(on_cpu_and_device, &session);
    FAIL() << "what does the budget limit?";
  } catch (const BadOption& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("on 'cpu' and on '" + device().str() + "'"), std::string::npos) << what;
    EXPECT_NE(what.find("option budgets"), std::string::npos) << what;
  }
  EXPECT_THROW((void)session.step(), BadOption);
  Session without_budget;
  EXPECT_EQ(difference(train(on_cpu_and_device, nullptr), train(on_cpu_and_device, &without_budget)), "");
}

TEST(DevicesOfTheMachine, AreEachFoundToWork) {
  const auto all = tools::accelerators();
  ASSERT_EQ(all.size(), 2);
  for (const c10::Device one : all) {
    const tools::DeviceCheck check = tools::check_device(one);
    EXPECT_EQ(check.why_not_counted, "");
    EXPECT_EQ(check.failure, "");
    EXPECT_TRUE(check.exact);
    EXPECT_GT(check.replays, 5);
    EXPECT_EQ(check.why_no_host, "");
  }
  EXPECT_NE(tools::check_device(c10::Device(c10::kMeta)).why_not_counted, "");
}

// ---- checkpoint ----------------------------------------------------------------------------------------------------

TEST(CheckpointOnDevice, EvictsAndRecomputesWithTheSameBits) {
  struct Model {
    std::vector<at::Tensor> weights;
    at::Tensor x;
  };
  const auto make = [](bool checkpoints, Bytes* after_forward) {
    Model model;
    for (int i = 0; i < 6; ++i) {
      model.weights.push_back((torch::randn({width, width}) * 0.1).to(device()).requires_grad_());
    }
    model.x = torch::randn({rows, width}).to(device());
    const auto loss = [=] {
      at::Tensor h = model.x;
      for (const at::Tensor& weight : model.weights) {
        const auto block = [&](const at::Tensor& in) {
          return torch::dropout(torch::gelu(torch::tanh(torch::linear(in, weight))), 0.2, true);
        };
        h = checkpoints ? checkpoint(block, h) : block(h);
      }
      *after_forward = accelerator::memory().live;
      return h.pow(2).mean();
    };
    return Trained{model.weights, loss};
  };
  Bytes kept = 0, evicted = 0;
  const Outcome plain = train([&] { return make(false, &kept); }, nullptr);
  EXPECT_EQ(difference(plain, train([&] { return make(true, &evicted); }, nullptr)), "");
  constexpr Bytes one = rows * width * 4;
  EXPECT_LE(evicted, kept - 6 * (one + one / 4)) << "of each block what tanh gave, and the mask of dropout";
}

}  // namespace
}  // namespace reprise::testing
