// A budget as a number and as text.
#include "reprise/trace/budget.h"

#include <gtest/gtest.h>

#include "reprise/trace/error.h"

namespace reprise {
namespace {

struct Options {
  Budget budget = {};
};

TEST(Budget, IsANumberOfBytesTextAShareOrNoLimit) {
  EXPECT_EQ(Options{}.budget.bytes(), no_limit);
  EXPECT_EQ(Options{.budget = 0}.budget.bytes(), 0);
  EXPECT_EQ(Options{.budget = 1234}.budget.bytes(), 1234);
  EXPECT_EQ(Options{.budget = -5}.budget.bytes(), -5) << "the session says what is wrong";
  EXPECT_EQ(Options{.budget = std::size_t{7}}.budget.bytes(), 7);
  EXPECT_EQ(Options{.budget = no_limit}.budget, Budget());
  EXPECT_EQ(Options{.budget = "2GiB"}.budget.bytes(), Bytes{2} << 30);
  EXPECT_EQ(Options{.budget = std::string(" 1.5 KB ")}.budget.bytes(), 1500);
  EXPECT_EQ(Options{.budget = "none"}.budget, Budget());
  const Budget share = "0.4x";
  EXPECT_TRUE(share.is_share());
  EXPECT_EQ(share.bytes(), no_limit);
  EXPECT_EQ(share.bytes_at(10), 4);
  EXPECT_EQ(Budget(3).bytes_at(10), 3);
}

TEST(Budget, IsWrittenAsItIsRead) {
  for (const char* text : {"0", "1234", "0.4x", "none"}) EXPECT_EQ(Budget(text).text(), text);
  EXPECT_EQ(Budget("2KiB").text(), "2048");
}

TEST(Budget, OfOtherTextIsAnErrorThatNamesOptionValueAndConstraint) {
  const auto problem = [](const char* text) -> std::string {
    try {
      return "none: " + Budget(text).text();
    } catch (const BadOption& error) {
      return error.what();
    }
  };
  EXPECT_EQ(problem("much"),
            "[session] option budget is 'much': it must be a number of bytes such as 1234, 512MiB or 1.5GB, a share of "
            "the plain peak such as 0.8x, or none");
  for (const char* text : {"", "x", "auto", "-1", "50%", "1 x x", "nonee"}) {
    EXPECT_EQ(problem(text).substr(0, 25), "[session] option budget i") << text;
  }
  EXPECT_EQ(problem("7.5"), "[session] option budget is '7.5': it must be whole bytes");
  EXPECT_EQ(problem("99999999PiB").substr(0, 45), "[session] option budget is '99999999PiB': it ");
}

}  // namespace
}  // namespace reprise
