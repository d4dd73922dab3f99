// What docs/formats.md shows is true: its examples are read, its plan fits its trace, its errors are the ones that
// come.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "paths.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

std::string document() {
  std::ostringstream text;
  text << std::ifstream(REPRISE_SOURCE_DIR "/docs/formats.md").rdbuf();
  return text.str();
}

std::vector<std::string> examples() {
  const std::string text = document(), opening = "```json\n";
  std::vector<std::string> found;
  for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at)) {
    at += opening.size();
    found.push_back(text.substr(at, text.find("```", at) - at));
  }
  return found;
}

TEST(FormatsDocument, ExamplesAreReadAndLookAsWritten) {
  ASSERT_EQ(examples().size(), 3u);
  EXPECT_EQ(to_json(parse_trace(examples()[0])), examples()[0]);
  EXPECT_EQ(to_json(parse_plan(examples()[1])), examples()[1]);
  EXPECT_EQ(parse_trace(examples()[2]).operators[3].name, "join");
}

TEST(FormatsDocument, PlanFitsItsTrace) {
  const Trace trace = parse_trace(examples()[0]);
  const Plan plan = parse_plan(examples()[1]);
  const Simulation result = simulate(trace, plan);
  ASSERT_TRUE(result.valid()) << result.broken->sentence;
  EXPECT_EQ(result.peak, plan.budget);
  Plan keep{0, {}, {}};
  for (Id m = 0; m < trace.moment_count(); ++m) {
    keep.actions.push_back(Action::run(m));
    if (m == 3) keep.actions.push_back(Action::drop(4));  // each value after its last use
    if (m == 4) keep.actions.push_back(Action::drop(5));
  }
  const Bytes peak = simulate(trace, keep, {.check_budget = false}).peak;
  EXPECT_NE(document().find(std::to_string(peak) + " that keeping everything needs"), std::string::npos) << peak;
}

TEST(FormatsDocument, ErrorsAreTheOnesThatCome) {
  const testing::TemporaryFolder folder;
  const std::string trace = R"({"format":"reprise-trace","version":1)";
  const std::vector<std::string> files = {
      trace + R"(,"operators":[{"name":")",
      "hello",
      "{}",
      R"({"format":"reprise-plan","version":1})",
      R"({"format":"reprise-trace","version":2})",
      trace + R"(,"colour":1})",
      trace + R"(,"values":[{"bytes":1.5}]})",
      trace + R"(,"operators":[{"inputs":[7]}],"values":[{"bytes":1}],"moments":[{"runs":0}]})",
      trace + R"(,"operators":[{"inputs":[1],"outputs":[0]},{"inputs":[0],"outputs":[1]}],
                  "values":[{"bytes":1,"maker":0},{"bytes":1,"maker":1}],"moments":[{"runs":0},{"runs":1}]})",
      R"({"cost":[1,1],"size":[1,1],"edges":[[0,1],[1,0]]})",
      trace + R"(,"operators":[],"values":[{"bytes":2000000000000000000}],"moments":[]})"};
  const std::string text = document();
  const auto expect_shown = [&](const std::filesystem::path& path) {
    try {
      static_cast<void>(read_trace(path));
      ADD_FAILURE() << "no error";
    } catch (const BadInput& error) {
      const std::string line = "trace.json: " + std::string(error.what()).substr(error.file().size() + 2);
      EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << "not in docs/formats.md: " << line;
    }
  };
  for (const std::string& file : files) expect_shown(folder.write("trace.json", file));
  expect_shown(folder / "nothing.json");
}

}  // namespace
}  // namespace reprise
