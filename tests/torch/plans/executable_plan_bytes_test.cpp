// Scripts as bytes: what a copy of the process tells is what it has.
#include "torch/plans/executable_plan_bytes.h"

#include <gtest/gtest.h>

#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

ExecutablePlan some_executable() {
  ExecutablePlan executable;
  executable.steps = {{ExecutablePlan::Step::Kind::replay, 0},
                      {ExecutablePlan::Step::Kind::drop, 3},
                      {ExecutablePlan::Step::Kind::end, 4}};
  executable.after = {0, 1, 3};
  executable.before = {0, 1, 2};
  executable.events = {0, 77};
  executable.recipes = {5, 0};
  executable.replays = {{{1, 2}, {3}}, {{}, {}}};
  executable.owned = {1, 0};
  executable.last_drop = {-1, 2};
  executable.packings = {{.value = 4, .form = {}}};
  executable.most_other = {{5, 6}, {7, 8}};
  executable.budget = 1000;
  executable.peak = 900;
  executable.added_cost = 1.5;
  executable.plain_cost = 10;
  executable.gap = 0.25;
  return executable;
}

std::string bytes_of_some() {
  ByteWriter writer;
  writer.text("before");
  writer.executable(some_executable());
  writer.number(7);
  return writer.take();
}

TEST(ExecutablePlanBytes, AreReadAsTheyWereWritten) {
  const std::string bytes = bytes_of_some();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.text(), "before");
  const ExecutablePlan executable = reader.executable(), expected = some_executable();
  EXPECT_EQ(reader.number<int>(), 7);
  ASSERT_EQ(executable.steps.size(), 3u);
  EXPECT_EQ(executable.steps[1].kind, ExecutablePlan::Step::Kind::drop);
  EXPECT_EQ(executable.steps[1].target, 3);
  EXPECT_EQ(executable.after, expected.after);
  EXPECT_EQ(executable.before, expected.before);
  EXPECT_EQ(executable.events, expected.events);
  EXPECT_EQ(executable.recipes, expected.recipes);
  ASSERT_EQ(executable.replays.size(), 2u);
  EXPECT_EQ(executable.replays[0].operators, expected.replays[0].operators);
  EXPECT_EQ(executable.replays[0].outputs, expected.replays[0].outputs);
  EXPECT_EQ(executable.owned, expected.owned);
  EXPECT_EQ(executable.last_drop, expected.last_drop);
  ASSERT_EQ(executable.packings.size(), 1u);
  EXPECT_EQ(executable.packings[0].value, 4);
  EXPECT_EQ(executable.most_other[0].between, 5);
  EXPECT_EQ(executable.budget, 1000);
  EXPECT_EQ(executable.peak, 900);
  EXPECT_EQ(executable.added_cost, 1.5);
  EXPECT_EQ(executable.plain_cost, 10);
  EXPECT_EQ(executable.gap, 0.25);
}

TEST(ExecutablePlanBytes, ThatEndTooSoonAreAnError) {
  const std::string bytes = bytes_of_some();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader reader(std::string_view(bytes).substr(0, size));
    const auto read = [&] {
      (void)reader.text();
      (void)reader.executable();
      (void)reader.number<int>();
    };
    EXPECT_THROW(read(), Error) << size;
  }
}

}  // namespace
}  // namespace reprise
