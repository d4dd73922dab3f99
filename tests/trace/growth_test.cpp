// What a trace would be at another size.
#include "reprise/trace/growth.h"

#include <gtest/gtest.h>

#include <functional>

#include "reprise/trace/error.h"
#include "support/cases.h"
#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

using testing::all_kinds;
using testing::CaseKind;
using testing::cases;
using testing::Random;
using testing::random_case;

// Calls `number(old)` for everything in a trace that a size changes, in an order of its own.
void change_numbers(Trace& trace, const std::function<Bytes(Bytes)>& bytes, const std::function<double(double)>& cost) {
  for (Operator& op : trace.operators) {
    op.workspace = bytes(op.workspace);
    op.cost = cost(op.cost);
  }
  for (Value& value : trace.values) {
    // What takes over a storage has its bytes.
    value.bytes = value.takes_over ? trace.values[*value.takes_over].bytes : bytes(value.bytes);
  }
  for (Moment& moment : trace.moments) {
    moment.other = bytes(moment.other);
    if (!moment.runs) moment.cost = cost(moment.cost);
  }
  for (Tier& tier : trace.tiers) {
    for (TierEntry& entry : tier.entries) {
      entry.bytes = bytes(entry.bytes);
      entry.put_cost = cost(entry.put_cost);
      entry.get_cost = cost(entry.get_cost);
    }
    tier.capacity.reset();
  }
}

// A program whose numbers are polynomials of the size with random coefficients, different for every number.
class Program {
 public:
  Program(CaseKind kind, std::uint64_t seed, int degree) : base_(random_case(kind, seed, 24)), seed_(seed) {
    degree_ = degree;
  }

  [[nodiscard]] Trace at(std::int64_t size) const {
    Random random(seed_);
    const auto polynomial = [&]() {
      std::int64_t number = 0, power = 1;
      for (int i = 0; i <= degree_; ++i, power *= size)
        number += power * static_cast<std::int64_t>(random.below(5'000));
      return number;
    };
    Trace trace = base_;
    change_numbers(
        trace, [&](Bytes) { return polynomial(); }, [&](double) { return static_cast<double>(polynomial()); });
    return trace;
  }

 private:
  const Trace base_;
  const std::uint64_t seed_;
  int degree_ = 1;
};

TEST(Growth, IsExactWhereEverythingGrowsEvenly) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(10); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Program program(kind, seed, 1);
      const Growth growth({{16, program.at(16)}, {4, program.at(4)}});
      for (const std::int64_t size : {1, 3, 4, 10, 16, 17, 64, 1000})
        EXPECT_EQ(growth.at(size), program.at(size)) << size;
    }
  }
}

TEST(Growth, IsExactForSquaresFromThreeSizes) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(10); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Program program(kind, seed, 2);
      const Growth growth({{8, program.at(8)}, {32, program.at(32)}, {16, program.at(16)}});
      for (const std::int64_t size : {8, 16, 20, 32, 50, 512}) {
        const Trace predicted = growth.at(size), real = program.at(size);
        for (Id v = 0; v < real.value_count(); ++v) EXPECT_NEAR(predicted.values[v].bytes, real.values[v].bytes, 1);
        for (Id m = 0; m < real.moment_count(); ++m) {
          EXPECT_NEAR(predicted.moments[m].other, real.moments[m].other, 1);
          // A cost that is a straight line up to a tenth is taken for one.
          if (size <= 32)
            EXPECT_NEAR(predicted.cost(m), real.cost(m), 0.11 * real.cost(m) + 0.11 * program.at(32).cost(m));
        }
      }
    }
  }
}

TEST(Growth, OfAnotherSizeIsAValidTraceOfTheSameStructure) {
  for (const CaseKind kind : all_kinds()) {
    for (std::uint64_t seed = 1; seed <= cases(20); ++seed) {
      SCOPED_TRACE(std::string(name(kind)) + ", seed " + std::to_string(seed));
      const Trace base = random_case(kind, seed, 30);
      std::vector<SizedTrace> recorded;
      for (const std::int64_t size : {2, 3, 7}) {
        Trace trace = base;
        Random random(seed * 100 + static_cast<std::uint64_t>(size));
        // Any numbers at all: also smaller at a larger size.
        change_numbers(
            trace, [&](Bytes) { return static_cast<Bytes>(random.below(1 << 20)); },
            [&](double) { return static_cast<double>(random.below(1000)); });
        check(trace);
        recorded.push_back({size, std::move(trace)});
      }
      const Growth growth(recorded);
      for (const std::int64_t size : {1, 2, 5, 8, 100}) {
        const Trace trace = growth.at(size);
        EXPECT_NO_THROW(check(trace));
        const Trace& largest = recorded.back().trace;
        for (Id v = 0; v < trace.value_count(); ++v) {
          if (size > 7) EXPECT_GE(trace.values[v].bytes, largest.values[v].bytes);
        }
        EXPECT_NO_THROW(Growth({recorded.front(), {size + 1000, trace}})) << "another structure";
      }
    }
  }
}

TEST(Growth, NeverPredictsFewerBytesThanWereRecorded) {
  testing::SmallTrace small;
  small.run({}, {1000});
  std::vector<SizedTrace> recorded;
  // Rounded up to 64, as an allocator does.
  for (const std::int64_t size : {3, 5, 9, 14, 15}) {
    small.trace.values[0].bytes = (size * 100 + 63) / 64 * 64 + 64;
    recorded.push_back({size, small.trace});
  }
  const Growth growth({recorded[0], recorded[2], recorded[4]});
  for (const SizedTrace& known : recorded) {
    EXPECT_GE(growth.at(known.size).values[0].bytes, known.trace.values[0].bytes) << known.size;
    EXPECT_LE(growth.at(known.size).values[0].bytes, known.trace.values[0].bytes + 128) << known.size;
  }
}

TEST(Growth, OfCostsFollowsTheLineThroughTheirNoise) {
  testing::SmallTrace small;
  small.run({}, {1}, 0);
  std::vector<SizedTrace> recorded;
  for (const auto& [size, cost] : {std::pair{10, 100.0}, {20, 212.0}, {40, 400.0}}) {
    small.trace.operators[0].cost = cost;
    recorded.push_back({size, small.trace});
  }
  EXPECT_DOUBLE_EQ(Growth(recorded).at(80).operators[0].cost, 800);
  recorded[1].trace.operators[0].cost = 150;  // no noise any more
  EXPECT_GT(Growth(recorded).at(80).operators[0].cost, 1000);
}

TEST(Growth, KeepsAValueInATierOnlyIfAllTracesHaveItThere) {
  testing::SmallTrace small;
  small.run({}, {64, 64, 64});
  Tier packed;
  packed.name = "packed";
  packed.entries = {{0, 8, 1, 1}, {1, 8, 1, 1}, {2, 8, 1, 1}};
  small.trace.tiers = {packed};
  Trace larger = small.trace;
  larger.tiers[0].entries = {{0, 16, 2, 2}, {2, 16, 2, 2}};
  const Trace grown = Growth({{1, small.trace}, {2, larger}}).at(4);
  ASSERT_EQ(grown.tiers.size(), 1u);
  EXPECT_EQ(grown.tiers[0].entries, (std::vector<TierEntry>{{0, 32, 4, 4}, {2, 32, 4, 4}}));
  larger.tiers.clear();
  EXPECT_TRUE(Growth({{1, small.trace}, {2, larger}}).at(4).tiers.empty());
}

// ---- errors --------------------------------------------------------------------------------------------------------

std::string refusal(std::vector<SizedTrace> recorded) {
  try {
    const Growth growth(std::move(recorded));
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

testing::SmallTrace two_layers() {
  testing::SmallTrace small;
  small.run({}, {64});
  small.run({0}, {64});
  small.event({0, 1});
  return small;
}

TEST(GrowthOfDifferentTraces, NamesTheFirstOperatorThatDiffers) {
  const Trace one = two_layers().trace;
  const auto against = [&](const std::function<void(testing::SmallTrace&)>& change) {
    testing::SmallTrace other = two_layers();
    change(other);
    return refusal({{8, one}, {16, other.trace}});
  };
  const auto starts = [](const std::string& text, const std::string& with) {
    return ::testing::AssertionResult(text.starts_with(with)) << text;
  };
  EXPECT_TRUE(starts(against([](auto& other) { other.trace.operators[1].name = "conv"; }),
                     "moments[1]: at size 8 it is operator 'operator 1', at size 16 operator 'conv'"));
  EXPECT_TRUE(starts(against([](auto& other) { other.event({1}); }),
                     "moments[3]: at size 16 there is event 'event 3', and at size 8 the trace is over"));
  EXPECT_TRUE(starts(against([](auto& other) { other.trace.moments[2].needs = {1}; }),
                     "moments[2]: event 'event 2' has other values at size 8 than at size 16"));
  EXPECT_TRUE(starts(against([](auto& other) { other.trace.operators[0].replayable = false; }),
                     "moments[0]: operator 'operator 0' may be replayed at size 8, but not at size 16"));
  EXPECT_TRUE(starts(against([](auto& other) { other.outside(5); }), "values: at size 8 there are 2, at size 16 3"));
  EXPECT_TRUE(starts(against([](auto& other) {
                       other.trace.values[1].held = Stretch{1, 2};
                     }),
                     "values[1]: value 1 of 'operator 1' is held by the program for another stretch at size 8"));
  EXPECT_EQ(against([](auto& other) { other.trace.values[1].bytes = 5; }), "");
}

TEST(GrowthOfDifferentTraces, WantsTwoDifferentSizesAboveZero) {
  const Trace trace = two_layers().trace;
  EXPECT_EQ(refusal({}), "sizes: there are traces of 0 sizes, and growth needs two");
  EXPECT_EQ(refusal({{8, trace}}), "sizes: there are traces of 1 sizes, and growth needs two");
  EXPECT_EQ(refusal({{8, trace}, {4, trace}, {8, trace}}), "sizes: there are two traces of size 8");
  EXPECT_EQ(refusal({{8, trace}, {0, trace}}), "sizes: 0 is not above zero");
  EXPECT_THROW((void)Growth({{8, trace}, {4, trace}}).at(0), BadOption);
}

TEST(Growth, BeyondWhatATraceCanHaveIsAnError) {
  testing::SmallTrace small;
  small.run({}, {Bytes{1} << 40});
  Trace larger = small.trace;
  larger.values[0].bytes = Bytes{1} << 50;
  const Growth growth({{1, small.trace}, {2, larger}});
  EXPECT_NO_THROW((void)growth.at(3));
  EXPECT_THROW((void)growth.at(1'000'000'000), BadInput);
}

}  // namespace
}  // namespace reprise
