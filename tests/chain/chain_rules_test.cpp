#include "chain/chain_rules.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "chain/toy.h"
#include "reprise/chain/schedule.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

using testing::first_layers;
using testing::Numbers;
using testing::some_numbers;
using testing::Toy;

// The rule that is broken, as the interpreter names it; empty if none is.
std::string broken_rule(const ChainForm& form, const Plan& plan) {
  const Simulation proof = simulate(chain_trace(form), plan, {.record_live = false});
  return proof.valid() ? "" : name(proof.broken->rule);
}

// Which actions are the last gets of a copy before it is put again.
std::vector<std::size_t> last_gets(const Plan& plan) {
  std::vector<std::size_t> result;
  std::set<std::pair<Id, Id>> read_later;
  for (std::size_t i = plan.actions.size(); i-- > 0;) {
    const Action& action = plan.actions[i];
    if (action.kind == Action::Kind::put) read_later.erase({action.target, action.tier});
    if (action.kind != Action::Kind::get) continue;
    if (read_later.insert({action.target, action.tier}).second) result.push_back(i);
  }
  return {result.rbegin(), result.rend()};
}

std::string broken_rule_step_by_step(const ChainForm& form, const Plan& plan) {
  ChainRules rules(form.tapes, static_cast<Id>(form.tiers.size()));
  rules.set_layers(form.size());
  try {
    rules.execute(plan.actions, 0, last_gets(plan));
    rules.end();
  } catch (const BadOption& error) {
    const std::string text = error.what();
    const std::size_t at = text.rfind("(rule: ") + 7;
    return text.substr(at, text.rfind(')') - at);
  }
  return "";
}

TEST(ChainRules, AreThoseOfTheInterpreterOnPlansThatWereTamperedWith) {
  std::mt19937_64 random(1);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  int valid = 0, broken = 0;
  for (int i = 0; i < 6000; ++i) {
    ChainForm form = equal_layers(static_cast<Id>(1 + below(9)));
    form.tapes = below(2) == 0;
    const bool tier = below(2) == 0;
    if (tier) add_packed_tier(form);
    const int slots = 1 + static_cast<int>(below(4));
    Plan plan = (below(2) == 0 ? schedule::slots(slots) : schedule::every(slots))->plan(form);
    auto& actions = plan.actions;
    for (std::size_t changes = below(3); changes > 0; --changes) {
      const std::size_t at = below(actions.size());
      switch (below(5)) {
        case 0: actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(at)); break;
        case 1:
          actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(at), actions[below(actions.size())]);
          break;
        case 2: std::swap(actions[at], actions[below(actions.size())]); break;
        case 3: actions[at].target += below(2) == 0 ? 1 : -1; break;
        case 4: actions[at].kind = static_cast<Action::Kind>(below(tier ? 5 : 3)); break;
        default: break;
      }
      if (actions.empty()) break;
    }
    const std::string expected = broken_rule(form, plan);
    EXPECT_EQ(broken_rule_step_by_step(form, plan), expected) << i;
    ++(expected.empty() ? valid : broken);
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(broken, 1000);
}

// Regular schedules give the same steps one by one, and to long chains never a plan.
class StepsOnly : public Schedule {
 public:
  explicit StepsOnly(SchedulePointer schedule) : schedule_(std::move(schedule)) {}
  Plan plan(const ChainForm&) const override { throw BadOption("asked for a plan"); }
  std::unique_ptr<ChainStepSource> steps(Id layers) const override { return schedule_->steps(layers); }

 private:
  const SchedulePointer schedule_;
};

TEST(RegularSchedules, OfLongChainsTakeTheirStepsAsTheyComeAndAreNeverAskedForAPlan) {
  const Toy toy;
  const Numbers input = some_numbers(8), seed = some_numbers(8, 2);
  for (const int layers : {10'001, 10'057}) {
    const auto plain = toy.plain(first_layers(layers), input, seed);
    for (const auto& schedule : {schedule::everything(), schedule::every(1), schedule::every(4), schedule::every(5, 2),
                                 schedule::slots(30), schedule::slots(200)}) {
      auto chain = toy.chain(layers);
      chain.schedule(std::make_shared<StepsOnly>(schedule));
      EXPECT_EQ(chain.forward(input), plain.result);
      // A plan that is asked for is written for that.
      EXPECT_EQ(chain.plan(), schedule->plan(equal_layers(layers)));
      EXPECT_TRUE(simulate(chain.trace(), chain.plan()).valid());
      EXPECT_EQ(chain.backward(seed), plain.gradient);
    }
  }
}

TEST(RegularSchedules, OfLongChainsWithACodecTakeTheirStepsAsTheyCome) {
  const Toy toy;
  const int layers = 10'031;
  const Numbers input = some_numbers(8), seed = some_numbers(8, 2);
  const auto plain = toy.plain(first_layers(layers), input, seed);
  ChainForm form = equal_layers(layers);
  add_packed_tier(form);
  for (const auto& schedule :
       {schedule::everything(), schedule::every(5, std::nullopt), schedule::slots(30), schedule::slots(200)}) {
    auto chain = toy.chain(layers);
    chain.codec(codec("exact"));
    chain.disk({.folder = ::testing::TempDir()});  // which none of them uses
    chain.schedule(std::make_shared<StepsOnly>(schedule));
    EXPECT_EQ(chain.forward(input), plain.result);
    const Plan& plan = chain.plan();
    EXPECT_EQ(plan.actions, schedule->plan(form).actions);
    EXPECT_TRUE(simulate(chain.trace(), plan).valid());
    EXPECT_EQ(chain.backward(seed), plain.gradient);
    EXPECT_EQ(chain.statistics().stored, 0);
    EXPECT_EQ(chain.store_statistics(StateTier::packed).in_memory, 0u);
  }
}

// The first pass compares states, one with an observer reports each layer; all others go through many at a time.
TEST(RegularSchedules, OfLongChainsHaveTheSameNumbersWithAndWithoutAnObserver) {
  const Toy toy;
  const int layers = 10'203;
  const Numbers input = some_numbers(8), seed = some_numbers(8, 2);
  const auto plain = toy.plain(first_layers(layers), input, seed);
  for (const auto& schedule :
       {schedule::everything(), schedule::every(7, std::nullopt), schedule::slots(12), schedule::online(12)}) {
    for (const bool coded : {false, true}) {
      auto chain = toy.chain(layers);
      if (coded) chain.codec(codec("exact"));
      chain.schedule(schedule);
      std::optional<ChainStatistics> first;
      for (int pass = 0; pass < 4; ++pass) {
        std::uint64_t reports = 0;
        if (pass == 2) chain.observer([&](const ChainProgress&) { ++reports; });
        EXPECT_EQ(chain.forward(input), plain.result);
        if (pass == 3) chain.observer(nullptr);
        if (pass == 1) chain.observer([&](const ChainProgress&) { ++reports; });  // in the middle of the pass
        EXPECT_EQ(chain.backward(seed), plain.gradient);
        ChainStatistics numbers = chain.statistics();
        if (pass == 1) EXPECT_EQ(reports, numbers.replays + numbers.backward_calls);
        if (pass == 2) EXPECT_EQ(reports, numbers.forward_calls + numbers.backward_calls);
        numbers.passes = 0;
        if (!first) first = numbers;
        EXPECT_EQ(numbers, *first) << schedule->text() << ", pass " << pass;
      }
    }
  }
}

TEST(RegularSchedules, ThatDecideAsTheyGoKeepNoListAndTheirPlanCanBeSeen) {
  const Toy toy;
  const Numbers input = some_numbers(8), seed = some_numbers(8, 2);
  for (const int layers : {1, 2, 40, 10'007}) {
    const auto plain = toy.plain(first_layers(layers), input, seed);
    for (const bool coded : {false, true}) {
      auto chain = toy.chain(layers);
      if (coded) chain.codec(codec("exact"));
      for (const auto& schedule : {schedule::online(9), schedule::selective(5)}) {
        chain.schedule(schedule);
        EXPECT_EQ(chain.forward(input), plain.result);
        const Simulation proof = simulate(chain.trace(), chain.plan());
        EXPECT_TRUE(proof.valid()) << proof.broken->sentence;
        EXPECT_EQ(chain.backward(seed), plain.gradient);
        EXPECT_EQ(chain.statistics().replays, proof.replays);
      }
    }
  }
}

TEST(RegularSchedules, StepsThatMakeNoSenseAreAnErrorBeforeTheyAreTaken) {
  class Nonsense : public Schedule {
   public:
    explicit Nonsense(ChainSteps steps) : steps_(std::move(steps)) {}
    Plan plan(const ChainForm& form) const override { return plan_of_steps(form, steps_); }
    std::unique_ptr<ChainStepSource> steps(Id) const override {
      class Source : public ChainStepSource {
       public:
        explicit Source(ChainSteps steps) : steps_(std::move(steps)) {}
        std::optional<ChainStep> next() override {
          if (at_ == steps_.size()) return std::nullopt;
          return steps_[at_++];
        }

       private:
        const ChainSteps steps_;
        std::size_t at_ = 0;
      };
      return std::make_unique<Source>(steps_);
    }

   private:
    const ChainSteps steps_;
  };
  using Kind = ChainStep::Kind;
  const Toy toy;
  const Numbers input = some_numbers(8), seed = some_numbers(8, 2);
  auto chain = toy.chain(10'001);
  for (const ChainSteps& steps : {ChainSteps{},
                                  ChainSteps{{Kind::advance, 1}},
                                  {{Kind::advance, 2}},
                                  {{Kind::advance, 1}, {Kind::advance, 2}, {Kind::backward, 2}},
                                  {{Kind::advance, 1}, {Kind::advance, 2}, {Kind::advance, 3}}}) {
    chain.schedule(std::make_shared<Nonsense>(steps));
    EXPECT_THROW(
        {
          (void)chain.forward(input);
          chain.backward(seed);
        },
        BadOption);
    EXPECT_EQ(chain.statistics().stored, 0);
  }
  chain.schedule(schedule::slots(30));
  const auto plain = toy.plain(first_layers(10'001), input, seed);
  EXPECT_EQ(chain.forward(input), plain.result);
  EXPECT_EQ(chain.backward(seed), plain.gradient);
}

}  // namespace
}  // namespace reprise
