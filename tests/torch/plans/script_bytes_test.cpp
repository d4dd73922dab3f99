// Scripts as bytes: what a copy of the process tells is what it has.
#include "torch/plans/script_bytes.h"

#include <gtest/gtest.h>

#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

Script some_script() {
  Script script;
  script.steps = {{Script::Step::Kind::replay, 0}, {Script::Step::Kind::drop, 3}, {Script::Step::Kind::end, 4}};
  script.after = {0, 1, 3};
  script.before = {0, 1, 2};
  script.events = {0, 77};
  script.recipes = {5, 0};
  script.replays = {{{1, 2}, {3}}, {{}, {}}};
  script.owned = {1, 0};
  script.last_drop = {-1, 2};
  script.forms.resize(2);
  script.other = {{1, 2}, {3, 4}};
  script.most_other = {{5, 6}, {7, 8}};
  script.budget = 1000;
  script.peak = 900;
  script.added_cost = 1.5;
  script.plain_cost = 10;
  script.gap = 0.25;
  return script;
}

std::string bytes_of_some() {
  ByteWriter writer;
  writer.text("before");
  writer.script(some_script());
  writer.number(7);
  return writer.take();
}

TEST(ScriptBytes, AreReadAsTheyWereWritten) {
  const std::string bytes = bytes_of_some();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.text(), "before");
  const Script script = reader.script(), expected = some_script();
  EXPECT_EQ(reader.number<int>(), 7);
  ASSERT_EQ(script.steps.size(), 3u);
  EXPECT_EQ(script.steps[1].kind, Script::Step::Kind::drop);
  EXPECT_EQ(script.steps[1].target, 3);
  EXPECT_EQ(script.after, expected.after);
  EXPECT_EQ(script.before, expected.before);
  EXPECT_EQ(script.events, expected.events);
  EXPECT_EQ(script.recipes, expected.recipes);
  ASSERT_EQ(script.replays.size(), 2u);
  EXPECT_EQ(script.replays[0].operators, expected.replays[0].operators);
  EXPECT_EQ(script.replays[0].outputs, expected.replays[0].outputs);
  EXPECT_EQ(script.owned, expected.owned);
  EXPECT_EQ(script.last_drop, expected.last_drop);
  EXPECT_EQ(script.forms, expected.forms);
  EXPECT_EQ(script.other[1].within, 4);
  EXPECT_EQ(script.most_other[0].between, 5);
  EXPECT_EQ(script.budget, 1000);
  EXPECT_EQ(script.peak, 900);
  EXPECT_EQ(script.added_cost, 1.5);
  EXPECT_EQ(script.plain_cost, 10);
  EXPECT_EQ(script.gap, 0.25);
}

TEST(ScriptBytes, ThatEndTooSoonAreAnError) {
  const std::string bytes = bytes_of_some();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ByteReader reader(std::string_view(bytes).substr(0, size));
    const auto read = [&] {
      (void)reader.text();
      (void)reader.script();
      (void)reader.number<int>();
    };
    EXPECT_THROW(read(), Error) << size;
  }
}

}  // namespace
}  // namespace reprise
