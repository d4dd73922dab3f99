// Policies: what is kept, evicted or packed by hand, operator by operator.
#include "reprise/torch/policy.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <set>

#include "reprise/torch/session.h"
#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::meter_here;
using testing::SmallTraining;
using testing::thrown_by;
using testing::within;

PolicyOperator named(const char* name) {
  PolicyOperator op;
  op.name = name;
  return op;
}

TEST(Policies, ReadyOnesSayWhatTheyAreNamedFor) {
  const Policy products = policy::keep_products();
  for (const char* name : {"aten::mm", "aten::addmm", "aten::convolution", "aten::bmm",
                           "aten::_scaled_dot_product_flash_attention_for_cpu"}) {
    EXPECT_EQ(products(named(name)), Choice::keep) << name;
  }
  EXPECT_EQ(products(named("aten::mul.Tensor")), Choice::automatic);

  PolicyOperator mask = named("aten::bernoulli_.float");
  EXPECT_EQ(policy::pack_random()(mask), Choice::automatic);
  mask.random = true;
  EXPECT_EQ(policy::pack_random()(mask), Choice::pack);

  PolicyOperator op = named("aten::add.Tensor");
  op.bytes = 4 << 20;
  EXPECT_EQ(policy::evict_cheap(0.001)(op), Choice::automatic);  // not measured
  op.seconds = 0.003;
  EXPECT_EQ(policy::evict_cheap(0.001)(op), Choice::evict);
  op.seconds = 0.005;
  EXPECT_EQ(policy::evict_cheap(0.001)(op), Choice::automatic);
  EXPECT_THROW((void)policy::evict_cheap(-1), BadOption);

  const Policy both = policy::first_of({policy::keep_products(), policy::pack_random()});
  EXPECT_EQ(both(mask), Choice::pack);
  EXPECT_EQ(both(named("aten::mm")), Choice::keep);
  EXPECT_EQ(both(named("aten::relu")), Choice::automatic);
  EXPECT_EQ(named("aten::mul.Tensor").plain_name(), "aten::mul");
}

TEST(Policies, ByNamesChooseForOperatorsThenForModulesThenOtherwise) {
  const Policy by_names = policy::by_names({{"encoder.*", Choice::pack},
                                            {"aten::tanh", Choice::evict},
                                            {"aten::mul.Tensor", Choice::keep},
                                            {"aten::bmm", Choice::automatic}},
                                           policy::keep_products());
  EXPECT_EQ(by_names(named("aten::tanh")), Choice::evict);
  EXPECT_EQ(by_names(named("aten::tanh.out")), Choice::evict);
  EXPECT_EQ(by_names(named("aten::mul.Tensor")), Choice::keep);
  EXPECT_EQ(by_names(named("aten::mul.Scalar")), Choice::automatic);
  EXPECT_EQ(by_names(named("aten::mm")), Choice::keep);
  EXPECT_EQ(by_names(named("aten::bmm")), Choice::automatic);  // which is a choice, too
  PolicyOperator inside = named("aten::mm");
  inside.module = "encoder.0";
  EXPECT_EQ(by_names(inside), Choice::pack);
  inside.name = "aten::tanh";
  EXPECT_EQ(by_names(inside), Choice::evict);
  EXPECT_EQ(policy::by_names({})(inside), Choice::automatic);
}

TEST(Policies, ByNamesThatNoSessionAsksAboutAreErrorsThatNameThem) {
  const auto error_of = [](const char* name) {
    const auto error = thrown_by<BadOption>([&] { (void)policy::by_names({{name, Choice::keep}}); });
    return error ? std::string(error->what()) : "none";
  };
  EXPECT_EQ(error_of("aten::gelu"), "none");
  for (const auto& [name, part] : std::map<const char*, const char*>{
           {"aten::tahn", "'aten::tahn': LibTorch has no operator of this name; near are aten::tan, aten::tanh"},
           {"aten::mul.tensor", "near are aten::mul.Tensor"},
           {"my::own", "'my::own': LibTorch has no operator of this name. An operator of your own"},
           {"aten::linear", "'aten::linear': it is composed of other operators"},
           {"aten::view", "'aten::view': it makes no values"},
           {"mm", "'mm': it must be an operator ('aten::mm') or modules ('encoder.*')"}}) {
    EXPECT_NE(error_of(name).find(part), std::string::npos) << error_of(name);
  }
}

TEST(Policies, AreAskedOnceForEachOperatorWithItsShapesBytesCostAndModule) {
  SmallTraining training;
  std::map<std::string, int> asked;
  std::set<std::string> modules;
  int with_cost = 0, without_bytes = 0;
  SessionOptions options = within(training.peak());
  options.policy = [&](const PolicyOperator& op) {
    ++asked[std::string(op.name)];
    modules.insert(std::string(op.module));
    with_cost += op.seconds.has_value();
    without_bytes += op.bytes == 0;
    EXPECT_FALSE(op.shapes.empty()) << op.name;
    return Choice::automatic;
  };
  Session session(options);
  session.label_modules(*training.model());
  for (int i = 0; i < 4; ++i) {
    const auto step = session.step();
    EXPECT_EQ(training.step(), training.expected());
  }
  int total = 0;
  for (const auto& [name, times] : asked) total += times;
  EXPECT_EQ(with_cost, total);
  EXPECT_LT(without_bytes, total);
  const auto trace = session.trace();
  ASSERT_TRUE(trace.has_value());
  const auto is_no_node = [](const Operator& op) { return op.name.starts_with("aten::"); };  // of backward
  EXPECT_EQ(total, std::count_if(trace->operators.begin(), trace->operators.end(), is_no_node));
  for (const auto& parameter : training.model()->named_parameters()) {
    EXPECT_TRUE(modules.contains(parameter.key().substr(0, parameter.key().rfind('.')))) << parameter.key();
  }
  EXPECT_TRUE(modules.contains(""));
}

TEST(Policies, WhateverTheySayTheBitsAreThoseOfThePlainRunAndThePeakStaysWithinTheBudget) {
  SmallTraining training;
  for (const int planning : {0, 300}) {
    for (int kind = 0; kind < 5; ++kind) {
      SessionOptions options = within(training.budget(0.7), std::chrono::milliseconds(planning));
      int count = 0;
      options.policy = [&, kind](const PolicyOperator&) {
        switch (kind) {
          case 0: return Choice::evict;
          case 1: return Choice::pack;
          case 2: return ++count % 3 == 0 ? Choice::evict : Choice::automatic;
          case 3: return ++count % 2 == 0 ? Choice::pack : Choice::evict;
          default: return ++count % 8 == 0 ? Choice::keep : Choice::automatic;
        }
      };
      Session session(options);
      for (int i = 0; i < 5; ++i) {
        training.drop_gradients();
        const auto step = session.step();
        ASSERT_EQ(training.step(), training.expected()) << kind;
        if (i == 1) session.wait_for_plan();
      }
      EXPECT_LE(session.summary().peak(), session.budget());
      if (kind == 0) EXPECT_GT(session.summary().replays, 0);
    }
  }
}

TEST(Policies, WhatIsEvictedIsNotHeldUntilBackwardAsksForIt) {
  SmallTraining training;
  Bytes held[2] = {};
  for (const bool evict : {false, true}) {
    SessionOptions options = within(training.peak() * 2);
    options.policy = [=](const PolicyOperator&) { return evict ? Choice::evict : Choice::automatic; };
    Session session(options);
    training.drop_gradients();
    const auto step = session.step();
    const at::Tensor loss = training.loss();
    held[evict] = meter_here().live() - training.level();
    loss.backward();
  }
  EXPECT_LT(held[1], held[0] / 4);
}

TEST(Policies, KeepingMoreThanTheBudgetIsAnErrorThatSaysByHowMuch) {
  SmallTraining training;
  SessionOptions options = within(training.budget(0.5));
  options.policy = [](const PolicyOperator&) { return Choice::keep; };
  Session session(options);
  const auto error = thrown_by<BudgetError>([&] {
    const auto step = session.step();
    (void)training.step();
  });
  ASSERT_TRUE(error.has_value());
  EXPECT_GT(error->facts().kept_by_policy, 0);
  EXPECT_NE(std::string(error->what()).find("the policy contradicts the budget by"), std::string::npos)
      << error->what();
  // Everything works on.
  training.drop_gradients();
  EXPECT_EQ(training.step(), training.expected());
}

TEST(Policies, KeptProductsAreNeverReplayed) {
  SmallTraining training;
  SessionOptions options = within(training.budget(0.8), std::chrono::milliseconds(300));
  options.policy = policy::keep_products();
  Session session(options);
  for (int i = 0; i < 4; ++i) {
    training.drop_gradients();
    const auto step = session.step();
    ASSERT_EQ(training.step(), training.expected());
    if (i == 1) session.wait_for_plan();
  }
  const auto trace = session.trace();
  ASSERT_TRUE(trace.has_value());
  int products = 0;
  for (const Operator& op : trace->operators) {
    if (op.name != "aten::addmm") continue;
    ++products;
    EXPECT_FALSE(op.replayable);
  }
  EXPECT_GT(products, 0);
}

TEST(Policies, OneThatThrowsLeavesTheDecisionToThePlanner) {
  SmallTraining training;
  SessionOptions options = within(training.budget(0.8));
  options.policy = [](const PolicyOperator&) -> Choice { throw std::runtime_error("no idea"); };
  Session session(options);
  {
    const auto step = session.step();
    EXPECT_EQ(training.step(), training.expected());
  }
  const Summary summary = session.summary();
  EXPECT_EQ(summary.divergences, 0);
  ASSERT_FALSE(summary.last_notes.empty());
  EXPECT_NE(summary.last_notes.back().what.find("no idea"), std::string::npos);
}

}  // namespace
}  // namespace reprise
