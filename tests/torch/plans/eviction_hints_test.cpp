// EvictionHints: what plans did with values like others, for steps that no plan is for.
#include "torch/plans/eviction_hints.h"

#include <gtest/gtest.h>

#include "reprise/trace/error.h"
#include "support/temporary_folder.h"
#include "torch/plans/made_pass.h"
#include "torch/plans/plan_folder.h"
#include "torch/small_training.h"

namespace reprise {
using namespace internal;
namespace {

using testing::difference;
using testing::MadePass;
using testing::SmallTraining;
using testing::within;

// ---- what is learnt from a plan ----

constexpr std::uint32_t cheap = 1, dear = 2, of_nobody = 3;

// Two values of one structural_hash, and one of another; backward needs them all.
class HintsFromAPlan : public ::testing::Test {
 protected:
  HintsFromAPlan() {
    const Id x = made_.outside(8);
    first_ = run(x, cheap);
    second_ = run(x, cheap);
    third_ = run(x, dear);
    made_.event("all", {first_, second_, third_});
    pass_ = made_.pass();
  }

  Id run(Id input, std::uint32_t structural_hash) {
    const Id value = made_.run({input}, 100);
    made_.recipes().operators.back().structural_hash.back() = structural_hash;
    return value;
  }

  // A executable that evicts these in forward, and recomputes some of them before backward begins.
  void evict(std::initializer_list<Id> values, std::initializer_list<Id> recomputed = {}) {
    auto executable = std::make_shared<ExecutablePlan>();
    executable->events = {0, 0, 0, 7};
    executable->owned.resize(made_.recipes().values.size());
    executable->after.assign(5, 0);
    executable->before.assign(5, 0);
    for (const Id value : values) executable->steps.push_back({ExecutablePlan::Step::Kind::drop, value});
    if (recomputed.size() > 0) {
      executable->steps.push_back({ExecutablePlan::Step::Kind::replay, 0});
      executable->replays.push_back({{}, recomputed});
    }
    executable->after[3] = executable->after[4] = static_cast<std::uint32_t>(executable->steps.size());
    pass_.use(std::move(executable), {});
  }

  MadePass made_;
  Id first_ = 0, second_ = 0, third_ = 0;
  RecordedPass pass_;
  EvictionHints hints_;
};

TEST_F(HintsFromAPlan, SaysThatItsValuesGoFirstIfItEvictedMostOfThem) {
  evict({first_, second_});
  hints_.learn(pass_);
  EXPECT_EQ(hints_.priority_of(cheap), EvictionPriority::first);
  EXPECT_EQ(hints_.priority_of(dear), EvictionPriority::last);
  EXPECT_EQ(hints_.priority_of(of_nobody), EvictionPriority::unknown);
}

TEST_F(HintsFromAPlan, CountsWhatIsThereWhenBackwardBeginsAsKept) {
  evict({first_, second_, third_}, {first_, second_});
  hints_.learn(pass_);
  EXPECT_EQ(hints_.priority_of(cheap), EvictionPriority::last);
  EXPECT_EQ(hints_.priority_of(dear), EvictionPriority::first);
}

TEST_F(HintsFromAPlan, ThatEvictsNothingSaysNothing) {
  evict({});
  hints_.learn(pass_);
  EXPECT_TRUE(hints_.all().empty());
}

TEST_F(HintsFromAPlan, CountsLessWhenOthersHaveComeSince) {
  evict({first_, second_});
  hints_.learn(pass_);
  evict({third_});
  hints_.learn(pass_);
  EXPECT_EQ(hints_.priority_of(cheap), EvictionPriority::early);
  for (int i = 0; i < 6; ++i) hints_.learn(pass_);
  EXPECT_EQ(hints_.priority_of(cheap), EvictionPriority::last);
  EXPECT_EQ(hints_.priority_of(dear), EvictionPriority::first);
}

TEST(EvictionHints, NeverGrowsWithoutABound) {
  EvictionHints hints;
  for (std::uint32_t i = 0; i < 100'000; i += 1000) {
    std::vector<EvictionHints::Seen> seen;
    for (std::uint32_t k = 0; k < 1000; ++k) seen.push_back({i + k, 0, 1.0 + i});
    hints.add(seen);
    ASSERT_LE(hints.all().size(), 4096u);
  }
  EXPECT_EQ(hints.priority_of(99'999), EvictionPriority::first) << "what was seen last is known";
}

// ---- in a folder ----

TEST(EvictionHints, IsReadFromAFolderAsItWasWritten) {
  const testing::TemporaryFolder folder;
  write_advice(folder / "deep", 1000, {{cheap, 0, 100}, {dear, 75, 100}});
  EXPECT_TRUE(read_advice(folder / "deep", 2000).empty()) << "of another budget";
  EvictionHints hints;
  hints.add(read_advice(folder / "deep", 1000));
  EXPECT_EQ(hints.all().size(), 2u);
  EXPECT_EQ(hints.priority_of(cheap), EvictionPriority::first);
  EXPECT_EQ(hints.priority_of(dear), EvictionPriority::late);
}

TEST(EvictionHints, IsNotReadFromAFileThatMakesNoSense) {
  const testing::TemporaryFolder folder;
  for (const char* text : {"", "something else\n1 2 3\n", "reprise-hints 1\n1 3 2\n", "reprise-hints 1\n1 -1 2\n",
                           "reprise-hints 1\n1 nan 2\n", "reprise-hints 1\n1 1 2\nthe end\n"}) {
    folder.write("1000.hints.txt", text);
    EXPECT_TRUE(read_advice(folder.path(), 1000).empty()) << text;
  }
  EXPECT_TRUE(read_advice("", 1000).empty());
  EXPECT_TRUE(read_advice(folder / "untracked", 1000).empty());
}

TEST(EvictionHints, ThatCannotBeWrittenIsAnError) {
  const testing::TemporaryFolder folder;
  folder.write("file", "");
  EXPECT_THROW(write_advice(folder / "file", 1000, {{cheap, 0, 100}}), Error);
}

// ---- structural_hash ----

std::uint32_t structural_hash_in(Recipes& recipes, Id value) {
  return recipes.operators[recipes.values[value].maker].structural_hash.back();
}

// An operator with this name that reads these, with its structural_hash.
Id add(MadePass& made, std::uint32_t name, std::initializer_list<Id> inputs, Bytes bytes = 8) {
  static std::vector<std::unique_ptr<OperatorInfo>> infos;
  infos.push_back(
      std::make_unique<OperatorInfo>(c10::Dispatcher::singleton().findSchemaOrThrow("aten::mul", "Tensor")));
  infos.back()->name_hash = name;
  const Id value = made.run(inputs, bytes);
  Recipe& recipe = made.recipes().operators.back();
  recipe.info = infos.back().get();
  recipe.structural_hash = made.recipes().structural_hash_of(*recipe.info, recipe.start.references);
  return value;
}

TEST(StructuralHash, IsThatOfTheSameNamesWhateverTheSizesAndWhereverTheyAre) {
  MadePass made;
  const Id x = made.outside(8), y = made.outside(80);
  const Id one = add(made, 2, {add(made, 1, {x})});
  (void)add(made, 9, {x});
  const Id other = add(made, 2, {add(made, 1, {y}, 80)}, 80);
  EXPECT_EQ(structural_hash_in(made.recipes(), one), structural_hash_in(made.recipes(), other));
}

TEST(StructuralHash, DiffersWhereNamesDifferUpToThreeOperatorsBack) {
  MadePass made;
  const Id x = made.outside(8);
  const auto after = [&](Id value, int operators) {
    for (int i = 0; i < operators; ++i) value = add(made, 5, {value});
    return structural_hash_in(made.recipes(), value);
  };
  const Id one = add(made, 1, {x}), other = add(made, 2, {x});
  for (int back = 0; back <= 3; ++back) EXPECT_NE(after(one, back), after(other, back)) << back;
  EXPECT_EQ(after(one, 4), after(other, 4));
}

TEST(StructuralHash, DiffersByTheOrderOfWhatIsRead) {
  MadePass made;
  const Id x = made.outside(8);
  const Id one = add(made, 1, {x}), other = add(made, 2, {x});
  EXPECT_NE(structural_hash_in(made.recipes(), add(made, 3, {one, other})),
            structural_hash_in(made.recipes(), add(made, 3, {other, one})));
}

// ---- steps that differ from those that have plans ----

TEST(HintsInASession, ServesStepsOfOtherLengthsWithTheSameBitsWithinTheBudget) {
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
      EXPECT_LE(session.summary().peak_last_step(), session.budget());
    }
  }
  EXPECT_GT(session.summary().verified, 0);
}

}  // namespace
}  // namespace reprise
