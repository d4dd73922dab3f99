// What the errors of a session say.
#include "reprise/torch/errors.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

bool has(const std::exception& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

TEST(BudgetErrors, SayWhatIsNeededAndWhatThereIsToTheByte) {
  const BudgetError error(
      {.budget = 106231344, .live = 97945088, .requested = 8388672, .pinned = {}, .smallest_feasible = {}});
  EXPECT_STREQ(
      error.what(),
      "[budget] 106333760 bytes (101.41 MiB) are needed (97945088 live and not evictable + 8388672 "
      "requested), the budget is 106231344 bytes (101.31 MiB); no plan has been made for this step yet, so it "
      "is not known which budget will do: Session::measure finds out without the memory, and "
      "Session::run plans a step that does not fit and runs it again (unless the step asks what it has computed)");
  EXPECT_EQ(error.need(), 106333760);
}

TEST(BudgetErrors, WithAnAcceleratorNameThePlaceAndWhatCanBeDoneThere) {
  const std::string advice = "begin with a larger one, wait for the plan, and lower it by Session::budget";
  for (const char* device : {"cpu", "npu:0"}) {
    BudgetError::Facts facts;
    facts.device = device;
    facts.cpu_alone = false;
    const BudgetError error(facts);
    EXPECT_TRUE(has(error, std::string(" requested) on ") + device + ", the budget is ")) << error.what();
    EXPECT_TRUE(has(error, advice)) << error.what();
    EXPECT_FALSE(has(error, "Session::measure")) << error.what();
  }
}

TEST(BudgetErrors, AdviseInTheWordsOfTheProgramsLanguage) {
  BudgetError::Facts facts;
  facts.advice = "session.measure(step) finds out";
  EXPECT_TRUE(has(BudgetError(facts), "which budget will do: session.measure(step) finds out"));
  EXPECT_FALSE(has(BudgetError(facts), "Session::"));
}

TEST(BudgetErrors, NameWhatIsPinnedAndTheSmallestBudgetThatWorks) {
  const BudgetError error({.budget = 10,
                           .live = 3 << 20,
                           .requested = 5,
                           .pinned = {{"parameters and other bytes", 2 << 20}, {"aten::nonzero", 1 << 20}},
                           .smallest_feasible = 4 << 20});
  EXPECT_TRUE(has(error,
                  "the budget is 10 bytes; pinned: parameters and other bytes 2.00 MiB, aten::nonzero 1.00 MiB; "
                  "the smallest budget with a proven plan is 4194304 bytes (4.00 MiB)"))
      << error.what();
}

TEST(BudgetErrors, SayWhereItHappenedAndWhatSetsTheSmallestBudget) {
  const BudgetError error({.budget = 10,
                           .live = 8,
                           .requested = 5,
                           .pinned = {},
                           .smallest_feasible = 12,
                           .floor = 11,
                           .floor_set_by = "moment 3 'MulBackward0', which needs 11 B of workspace",
                           .where = "moment 7 'SoftmaxBackward0'"});
  EXPECT_STREQ(
      error.what(),
      "[budget] 13 bytes are needed (8 live and not evictable + 5 requested) in moment 7 "
      "'SoftmaxBackward0', the budget is 10 bytes; the smallest budget with a proven plan is 12 bytes; no plan "
      "can do with less than 11 bytes, because of moment 3 'MulBackward0', which needs 11 B of workspace");
}

TEST(BudgetErrors, AddUpWhatIsPinnedIfItIsMuch) {
  BudgetError::Facts facts;
  for (int i = 0; i < 10; ++i) facts.pinned.push_back({"op", 1024});
  EXPECT_TRUE(has(BudgetError(facts), "op 1.00 KiB and 4 more with 4.00 KiB")) << BudgetError(facts).what();
  EXPECT_EQ(BudgetError(facts).facts().pinned.size(), 10u);
}

TEST(MismatchErrors, NameOperatorValueAndBlock) {
  const MismatchError error({.op = "my::noise", .operator_index = 34, .value = 12, .block = 3, .blocks = 16});
  EXPECT_TRUE(has(error, "[verify] value 12 of operator 34 'my::noise' was evicted")) << error.what();
  EXPECT_TRUE(has(error, "of its 16 blocks of 64 KiB the first that differs is block 3"));
  EXPECT_TRUE(has(error, "session.touched(tensor)"));
  EXPECT_TRUE(has(error, "kept from now on"));
  EXPECT_EQ(error.facts().block, 3u);
}

TEST(MismatchErrors, OfSmallValuesDoNotSpeakOfBlocks) {
  EXPECT_FALSE(has(MismatchError({.op = "op", .operator_index = 1, .value = 2, .block = 0, .blocks = 1}), "block"));
}

TEST(ChangedInputErrors, NameOperatorAndArgument) {
  const ChangedInputError error({.op = "aten::linear", .operator_index = 7, .argument = 1, .argument_name = "weight"});
  EXPECT_TRUE(has(error, "[replay] argument 1 'weight' of operator 7 'aten::linear' was written while nobody recorded"))
      << error.what();
  EXPECT_EQ(error.facts().argument_name, "weight");
  EXPECT_TRUE(has(ChangedInputError({.op = "op", .operator_index = 0, .argument = 2, .argument_name = ""}),
                  "argument 2 of operator 0 'op'"));
  EXPECT_TRUE(
      has(ChangedInputError({.op = "op", .operator_index = 0, .argument = 2, .argument_name = "", .freed = true}),
          "was freed by the program"));
}

TEST(SessionErrors, HaveOneBase) {
  EXPECT_THROW(throw BudgetError({}), SessionError);
  EXPECT_THROW(throw MismatchError({}), SessionError);
  EXPECT_THROW(throw ChangedInputError({}), SessionError);
  EXPECT_THROW(throw BudgetError({}), Error);
}

}  // namespace
}  // namespace reprise
