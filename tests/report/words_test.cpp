// Numbers and names as people read them.
#include "report/words.h"

#include <gtest/gtest.h>

#include "report/scale.h"
#include "report/svg.h"
#include "support/small_trace.h"

namespace reprise {
using namespace internal;
namespace {

TEST(Words, PercentSaysAsMuchAsOneWantsToKnow) {
  EXPECT_EQ(percent(0), "0 %");
  EXPECT_EQ(percent(-1e-12), "0 %");
  EXPECT_EQ(percent(0.0004), "<0.1 %");
  EXPECT_EQ(percent(0.0312), "3.1 %");
  EXPECT_EQ(percent(0.0996), "10 %");
  EXPECT_EQ(percent(15), "1500 %");
  EXPECT_EQ(small_percent(0.00034), "0.034 %");
  EXPECT_EQ(small_percent(0.25), "25 %");
  EXPECT_EQ(small_percent(2e-7), "<0.001 %");
}

TEST(Words, ASmallOverheadDoesNotLookLikeNone) {
  EXPECT_EQ(overhead(1), "none");
  EXPECT_EQ(overhead(1.0004), "<0.1 %: it costs 1.000400 times as much as running everything once");
  EXPECT_EQ(overhead(1.0312), "3.1 %: it costs 1.0312 times as much as running everything once");
}

TEST(Words, DurationsFitTheirSize) {
  EXPECT_EQ(duration(0.01), "less than 0.1 s");
  EXPECT_EQ(duration(3.52), "3.5 s");
  EXPECT_EQ(duration(12.4), "12 s");
  EXPECT_EQ(duration(125), "2 min 5 s");
}

TEST(Words, OneIsNotSeveral) {
  EXPECT_EQ(count(1, "replay"), "1 replay");
  EXPECT_EQ(count(0, "replay"), "0 replays");
}

TEST(Words, ABarGrowsInEighthsAndIsNeverMissingForSomething) {
  EXPECT_EQ(bar(0, 10), "");
  EXPECT_EQ(bar(1e-9, 10), "▏");
  EXPECT_EQ(bar(0.25, 2), "▌");
  EXPECT_EQ(bar(1, 2), "██");
  EXPECT_EQ(bar(5, 2), "██");
}

TEST(Words, NamesThatWouldUpsetATerminalAreMadeHarmless) {
  testing::SmallTrace small;
  small.run({}, {2048});
  small.trace.operators[0].name = "\x1b[31mred\n";
  small.trace.name = "a\tb";
  EXPECT_EQ(name_of(small.trace), "a?b");
  EXPECT_EQ(describe_value(small.trace, 0), "value 0 of '?[31mred?' (2.00 KiB)");
  EXPECT_EQ(describe_moment(small.trace, 0), "moment 0 '?[31mred?'");
}

TEST(Words, LongNamesAreCutBetweenCharacters) {
  testing::SmallTrace small;
  small.run({}, {1});
  small.trace.operators[0].name = "ääääääääää";
  EXPECT_EQ(maker_of(small.trace, 0, 10), "äää...");
  small.outside(1);
  EXPECT_EQ(maker_of(small.trace, 1, 10), "(outside)");
}

TEST(Words, TextForPicturesIsEscaped) {
  EXPECT_EQ(xml_text("a<b>&\"c\"", 100), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(xml_text("a\x01\xff", 100), "a??");
  EXPECT_EQ(xml_text("äöü", 2), "äö…");
}

TEST(Scale, TicksAreRoundAndNotTooMany) {
  for (const double largest : {0.0003, 0.07, 0.9, 1.0, 3.3, 12.0, 999.0, 1.5e18}) {
    for (const int most : {4, 5, 6}) {
      const Ticks ticks = round_ticks(largest, most);
      EXPECT_EQ(ticks.at.front(), 0);
      EXPECT_LE(ticks.at.back(), largest * (1 + 1e-9));
      EXPECT_LE(ticks.at.size(), static_cast<std::size_t>(most) + 1);
      EXPECT_GE(ticks.at.size(), 2u) << largest;
    }
  }
  EXPECT_EQ(round_ticks(11.2, 6).step, 2);
  EXPECT_EQ(round_ticks(0, 5).at, std::vector<double>{0});
}

TEST(Scale, UnitsFitTheLargestNumber) {
  EXPECT_STREQ(unit_for(1000).name, "B");
  EXPECT_STREQ(unit_for(1024).name, "KiB");
  EXPECT_STREQ(unit_for(Bytes{3} << 30).name, "GiB");
}

}  // namespace
}  // namespace reprise
