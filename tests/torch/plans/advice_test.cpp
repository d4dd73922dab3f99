// Advice: what plans did with values like others, for steps that no plan is for.
#include "torch/plans/advice.h"

#include <gtest/gtest.h>

#include "reprise/trace/error.h"
#include "support/temporary_folder.h"
#include "torch/plans/made_period.h"
#include "torch/plans/plan_folder.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::difference;
using testing::MadePeriod;
using testing::SmallTraining;
using testing::within;

// ---- what is learnt from a plan ----

constexpr std::uint32_t cheap = 1, dear = 2, of_nobody = 3;

// Two values of one likeness, and one of another; backward needs them all.
class AdviceFromAPlan : public ::testing::Test {
 protected:
  AdviceFromAPlan() {
    const Id x = made_.outside(8);
    first_ = run(x, cheap);
    second_ = run(x, cheap);
    third_ = run(x, dear);
    made_.event("all", {first_, second_, third_});
    period_ = made_.period();
  }

  Id run(Id input, std::uint32_t likeness) {
    const Id value = made_.run({input}, 100);
    made_.recipes().operators.back().likeness.back() = likeness;
    return value;
  }

  // A script that forgets these in forward, and rebuilds some of them before backward begins.
  void forget(std::initializer_list<Id> values, std::initializer_list<Id> rebuilt = {}) {
    auto script = std::make_shared<Script>();
    script->events = {0, 0, 0, 7};
    script->owned.resize(made_.recipes().values.size());
    script->after.assign(5, 0);
    script->before.assign(5, 0);
    for (const Id value : values) script->steps.push_back({Script::Step::Kind::drop, value});
    if (rebuilt.size() > 0) {
      script->steps.push_back({Script::Step::Kind::replay, 0});
      script->replays.push_back({{}, rebuilt});
    }
    script->after[3] = script->after[4] = static_cast<std::uint32_t>(script->steps.size());
    period_.use(std::move(script), {});
  }

  MadePeriod made_;
  Id first_ = 0, second_ = 0, third_ = 0;
  Period period_;
  Advice advice_;
};

TEST_F(AdviceFromAPlan, SaysThatItsValuesGoFirstIfItForgotMostOfThem) {
  forget({first_, second_});
  advice_.learn(period_);
  EXPECT_EQ(advice_.turn_of(cheap), Turn::first);
  EXPECT_EQ(advice_.turn_of(dear), Turn::last);
  EXPECT_EQ(advice_.turn_of(of_nobody), Turn::unknown);
}

TEST_F(AdviceFromAPlan, CountsWhatIsThereWhenBackwardBeginsAsKept) {
  forget({first_, second_, third_}, {first_, second_});
  advice_.learn(period_);
  EXPECT_EQ(advice_.turn_of(cheap), Turn::last);
  EXPECT_EQ(advice_.turn_of(dear), Turn::first);
}

TEST_F(AdviceFromAPlan, ThatForgetsNothingSaysNothing) {
  forget({});
  advice_.learn(period_);
  EXPECT_TRUE(advice_.all().empty());
}

TEST_F(AdviceFromAPlan, CountsLessWhenOthersHaveComeSince) {
  forget({first_, second_});
  advice_.learn(period_);
  forget({third_});
  advice_.learn(period_);
  EXPECT_EQ(advice_.turn_of(cheap), Turn::early);
  for (int i = 0; i < 6; ++i) advice_.learn(period_);
  EXPECT_EQ(advice_.turn_of(cheap), Turn::last);
  EXPECT_EQ(advice_.turn_of(dear), Turn::first);
}

TEST(Advice, NeverGrowsWithoutABound) {
  Advice advice;
  for (std::uint32_t i = 0; i < 100'000; i += 1000) {
    std::vector<Advice::Seen> seen;
    for (std::uint32_t k = 0; k < 1000; ++k) seen.push_back({i + k, 0, 1.0 + i});
    advice.add(seen);
    ASSERT_LE(advice.all().size(), 4096u);
  }
  EXPECT_EQ(advice.turn_of(99'999), Turn::first) << "what was seen last is known";
}

// ---- in a folder ----

TEST(Advice, IsReadFromAFolderAsItWasWritten) {
  const testing::TemporaryFolder folder;
  write_advice(folder / "deep", 1000, {{cheap, 0, 100}, {dear, 75, 100}});
  EXPECT_TRUE(read_advice(folder / "deep", 2000).empty()) << "of another budget";
  Advice advice;
  advice.add(read_advice(folder / "deep", 1000));
  EXPECT_EQ(advice.all().size(), 2u);
  EXPECT_EQ(advice.turn_of(cheap), Turn::first);
  EXPECT_EQ(advice.turn_of(dear), Turn::late);
}

TEST(Advice, IsNotReadFromAFileThatMakesNoSense) {
  const testing::TemporaryFolder folder;
  for (const char* text : {"", "something else\n1 2 3\n", "reprise-advice 1\n1 3 2\n", "reprise-advice 1\n1 -1 2\n",
                           "reprise-advice 1\n1 nan 2\n", "reprise-advice 1\n1 1 2\nthe end\n"}) {
    folder.write("1000.advice.txt", text);
    EXPECT_TRUE(read_advice(folder.path(), 1000).empty()) << text;
  }
  EXPECT_TRUE(read_advice("", 1000).empty());
  EXPECT_TRUE(read_advice(folder / "nowhere", 1000).empty());
}

TEST(Advice, ThatCannotBeWrittenIsAnError) {
  const testing::TemporaryFolder folder;
  folder.write("file", "");
  EXPECT_THROW(write_advice(folder / "file", 1000, {{cheap, 0, 100}}), Error);
}

// ---- likeness ----

std::uint32_t likeness_in(Recipes& recipes, Id value) {
  return recipes.operators[recipes.values[value].maker].likeness.back();
}

// An operator with this name that reads these, with its likeness.
Id add(MadePeriod& made, std::uint32_t name, std::initializer_list<Id> inputs, Bytes bytes = 8) {
  static std::vector<std::unique_ptr<OperatorInfo>> infos;
  infos.push_back(
      std::make_unique<OperatorInfo>(c10::Dispatcher::singleton().findSchemaOrThrow("aten::mul", "Tensor")));
  infos.back()->name_hash = name;
  const Id value = made.run(inputs, bytes);
  Recipe& recipe = made.recipes().operators.back();
  recipe.info = infos.back().get();
  recipe.likeness = made.recipes().likeness_of(*recipe.info, recipe.start.references);
  return value;
}

TEST(Likeness, IsThatOfTheSameNamesWhateverTheSizesAndWhereverTheyAre) {
  MadePeriod made;
  const Id x = made.outside(8), y = made.outside(80);
  const Id one = add(made, 2, {add(made, 1, {x})});
  (void)add(made, 9, {x});
  const Id other = add(made, 2, {add(made, 1, {y}, 80)}, 80);
  EXPECT_EQ(likeness_in(made.recipes(), one), likeness_in(made.recipes(), other));
}

TEST(Likeness, DiffersWhereNamesDifferUpToThreeOperatorsBack) {
  MadePeriod made;
  const Id x = made.outside(8);
  const auto after = [&](Id value, int operators) {
    for (int i = 0; i < operators; ++i) value = add(made, 5, {value});
    return likeness_in(made.recipes(), value);
  };
  const Id one = add(made, 1, {x}), other = add(made, 2, {x});
  for (int back = 0; back <= 3; ++back) EXPECT_NE(after(one, back), after(other, back)) << back;
  EXPECT_EQ(after(one, 4), after(other, 4));
}

TEST(Likeness, DiffersByTheOrderOfWhatIsRead) {
  MadePeriod made;
  const Id x = made.outside(8);
  const Id one = add(made, 1, {x}), other = add(made, 2, {x});
  EXPECT_NE(likeness_in(made.recipes(), add(made, 3, {one, other})),
            likeness_in(made.recipes(), add(made, 3, {other, one})));
}

// ---- steps that differ from those that have plans ----

TEST(AdviceInASession, ServesStepsOfOtherLengthsWithTheSameBitsWithinTheBudget) {
  SmallTraining training;
  Session session(within(training.budget(0.6), std::chrono::milliseconds(300)));
  for (std::int64_t rows = 256; rows > 200; rows -= 7) {
    for (int again = 0; again < (rows == 256 ? 3 : 1); ++again) {
      {
        const auto step = session.step();
        EXPECT_EQ(difference(training.expected(rows), training.step(rows)), "") << rows;
        training.drop_gradients();
      }
      if (rows == 256) session.wait_for_plan();
      EXPECT_LE(session.summary().peak_last_step, session.budget());
    }
  }
  EXPECT_GT(session.summary().verified, 0);
}

}  // namespace
}  // namespace reprise
