#include "reprise/trace/amount.h"

#include <gtest/gtest.h>

#include <limits>

#include "reprise/trace/error.h"
#include "support/random_trace.h"

namespace reprise {
namespace {

TEST(Amount, OfBytesIsReadWithAndWithoutUnits) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("1234"), 1234);
  EXPECT_EQ(parse_bytes("1234B"), 1234);
  EXPECT_EQ(parse_bytes("20KB"), 20'000);
  EXPECT_EQ(parse_bytes("20KiB"), 20'480);
  EXPECT_EQ(parse_bytes("3MB"), 3'000'000);
  EXPECT_EQ(parse_bytes("512MiB"), 512 * 1024 * 1024);
  EXPECT_EQ(parse_bytes("7GB"), 7'000'000'000);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1'610'612'736);
  EXPECT_EQ(parse_bytes("2TB"), 2'000'000'000'000);
  EXPECT_EQ(parse_bytes("2TiB"), Bytes{2} << 40);
}

TEST(Amount, IgnoresCaseAndASpaceBeforeTheUnit) {
  EXPECT_EQ(parse_bytes("1.5 gib"), 1'610'612'736);
  EXPECT_EQ(parse_bytes("20 kB"), 20'000);
  EXPECT_EQ(parse_bytes("20MIB"), 20 * 1024 * 1024);
}

TEST(Amount, CutsOffPartsOfAByteOfLargerUnitsOnly) {
  EXPECT_EQ(parse_bytes("1.3KiB"), 1331);  // 1331.2
  EXPECT_EQ(parse_bytes("0.0001KB"), 0);
  EXPECT_EQ(parse_bytes("7.0"), 7);
  EXPECT_THROW(static_cast<void>(parse_bytes("7.5")), BadOption);
  EXPECT_THROW(static_cast<void>(parse_bytes("7.5B")), BadOption);
}

TEST(Amount, AsAShareOfThePeakIsExact) {
  EXPECT_EQ(parse_budget("0.8x", 10), 8);
  EXPECT_EQ(parse_budget("0.3x", 10), 3);
  EXPECT_EQ(parse_budget("0.29x", 100), 29);  // 0.29 * 100 in doubles is 28.999999999999996
  EXPECT_EQ(parse_budget("0.7x", 10), 7);
  EXPECT_EQ(parse_budget("0.35x", 10), 3);
  EXPECT_EQ(parse_budget("1x", 12345), 12345);
  EXPECT_EQ(parse_budget("1.0x", 12345), 12345);
  EXPECT_EQ(parse_budget("1.25x", 8), 10);
  EXPECT_EQ(parse_budget("0X", 8), 0);
  EXPECT_EQ(parse_budget("0.999999999999999999x", largest_bytes - 1), 1152921504606846973);
  EXPECT_EQ(parse_budget("512MiB", 10), 512 * 1024 * 1024);
  EXPECT_EQ(parse_budget("0.8x", 0), 0);
}

TEST(Amount, AsAShareOfThePeakAgreesWithWholeNumberArithmetic) {
  testing::Random random(7);
  for (int i = 0; i < 10000; ++i) {
    const auto thousandths = static_cast<Bytes>(random.below(3000));
    const auto peak = static_cast<Bytes>(random.below(std::uint64_t{1} << random.below(50)));
    std::string decimals = std::to_string(thousandths % 1000);
    decimals.insert(0, 3 - decimals.size(), '0');
    const std::string text = std::to_string(thousandths / 1000) + "." + decimals + "x";
    ASSERT_EQ(parse_budget(text, peak), peak * thousandths / 1000) << text << " of " << peak;
  }
}

TEST(Amount, ThatIsNoneIsAnErrorThatNamesTheTextAndWhatIsExpected) {
  for (const char* text : {"",
                           " ",
                           "x",
                           "-1",
                           "+1",
                           "1e6",
                           "abc",
                           "12Q",
                           "12 x y",
                           "0x10",
                           "1..5",
                           ".5x",
                           "5.x",
                           "1,5MB",
                           "12 ",
                           " 12",
                           "12  KB",
                           "12M",
                           "12K",
                           "NaN",
                           "inf",
                           "0.8",
                           "0.8%",
                           "0.8xx",
                           "99999999999999999999",
                           "18446744073709551616",
                           "1152921504606846976",
                           "1048576TiB",
                           "0.1234567890123456789x",
                           "-0.5x",
                           "9999999999999999999x"}) {
    EXPECT_THROW(static_cast<void>(parse_budget(text, 1000)), BadOption) << text;
    EXPECT_THROW(static_cast<void>(parse_bytes(text)), BadOption) << text;
    try {
      static_cast<void>(parse_budget(text, 1000));
    } catch (const BadOption& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("'" + std::string(text) + "'"), std::string::npos) << what;
      EXPECT_NE(what.find("expected"), std::string::npos) << what;
    }
  }
  EXPECT_THROW(static_cast<void>(parse_bytes("0.8x")), BadOption);
}

TEST(Amount, IsShownToPeopleInBinaryUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(1'610'612'736), "1.50 GiB");
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(-1536), "-1.50 KiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<Bytes>::max()), "8.00 EiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<Bytes>::min()), "-8.00 EiB");
}

}  // namespace
}  // namespace reprise
