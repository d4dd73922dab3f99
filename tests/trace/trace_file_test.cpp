#include <gtest/gtest.h>

#include <cfloat>
#include <chrono>

#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "support/random_trace.h"
#include "support/small_trace.h"
#include "support/temporary_folder.h"

namespace reprise {
namespace {

using testing::TemporaryFolder;

std::string trace_with(const std::string& rest) {
  return R"({"format":"reprise-trace","version":1)" + rest + "}";
}
const std::string nothing = R"(,"operators":[],"values":[],"moments":[])";

void expect_error(const std::string& json, const std::string& place, const std::string& words) {
  try {
    static_cast<void>(parse_trace(json));
    ADD_FAILURE() << "no error for " << json.substr(0, 200);
  } catch (const BadInput& error) {
    EXPECT_EQ(error.place(), place) << error.what();
    EXPECT_NE(error.reason().find(words), std::string::npos) << error.what();
  }
}

TEST(TraceFile, IsReadBackExactly) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    testing::RandomTraceOptions options;
    options.moments = static_cast<int>(seed % 30);
    options.odd_costs = seed % 2 == 0 ? 0.5 : 0;
    options.overlap = 0.5;
    for (const Trace& trace : {testing::random_trace(seed, options), testing::random_graph(seed, options.moments),
                               testing::random_training_step(seed, options.moments)}) {
      const std::string json = to_json(trace);
      const Trace again = parse_trace(json);
      ASSERT_EQ(again, trace) << json;
      ASSERT_EQ(to_json(again), json);
    }
  }
}

TEST(TraceFile, KeepsEveryBitOfACost) {
  for (const double cost :
       {0.1, 1.0 / 3, 1e-300, DBL_MIN, DBL_TRUE_MIN, 123456789.123456789, 9.99999999999e17, 5e-324}) {
    Trace trace = testing::random_graph(1, 1);
    trace.operators[0].cost = cost;
    EXPECT_EQ(parse_trace(to_json(trace)).operators[0].cost, cost);
  }
}

TEST(TraceFile, HasTimesOfATierOnlyIfItTakesAny) {
  Trace trace = testing::random_graph(1, 2);
  trace.tiers = {{"disk", std::nullopt, false, {{0, 4, 2, 3}, {1, 4, 2, 3}}}};
  EXPECT_NE(to_json(trace).find("[0,4,2,3]"), std::string::npos);
  EXPECT_EQ(to_json(trace).find("duplex"), std::string::npos);
  trace.tiers[0].entries[1].get_time = 0.5;
  trace.tiers[0].duplex = true;
  const std::string json = to_json(trace);
  EXPECT_NE(json.find("[0,4,2,3,0,0]"), std::string::npos) << json;
  EXPECT_NE(json.find("[1,4,2,3,0,0.5]"), std::string::npos) << json;
  EXPECT_EQ(parse_trace(json), trace);
}

TEST(TraceFile, KeepsTheModuleOfAnOperatorAndWritesItOnlyIfThereIsOne) {
  Trace trace = testing::random_graph(1, 2);
  EXPECT_EQ(to_json(trace).find("module"), std::string::npos);
  trace.operators[1].module = "encoder.layers.3.\"norm\"";
  const std::string json = to_json(trace);
  EXPECT_EQ(parse_trace(json), trace);
  EXPECT_EQ(json.find("module"), json.rfind("module"));
}

TEST(TraceFile, NamesTheOperatorWhoseModuleIsNoText) {
  Trace trace = testing::random_graph(1, 2);
  trace.operators[1].module = "\xff";
  try {
    static_cast<void>(to_json(trace));
    ADD_FAILURE() << "no error";
  } catch (const BadInput& error) {
    EXPECT_EQ(error.place(), "operators[1].module");
  }
  expect_error(trace_with(R"(,"operators":[{"module":7}],"values":[],"moments":[])"), "operators[0].module", "string");
}

TEST(TraceFile, KeepsThatAnOperatorIsAnEventAndWritesItOnlyOfThose) {
  testing::SmallTrace small;
  small.run({}, {10});
  EXPECT_EQ(to_json(small.trace).find("event"), std::string::npos);
  small.event_with_workspace({0}, 20);
  const std::string json = to_json(small.trace);
  EXPECT_EQ(parse_trace(json), small.trace);
  EXPECT_EQ(json.find("\"event\":true"), json.rfind("\"event\""));
}

TEST(TraceFile, KeepsAnyNameThatIsText) {
  Trace trace = testing::random_graph(1, 2);
  trace.name = std::string("quote \" backslash \\ slash / newline \n tab \t bell \a nul ") + '\0' + " and more \x7f";
  trace.operators[0].name = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xb5 \xf4\x8f\xbf\xbf";
  EXPECT_EQ(parse_trace(to_json(trace)), trace);
}

TEST(TraceFile, HasNothingInItsNamesThatATerminalWouldActOn) {
  Trace trace = testing::random_graph(1, 2);
  trace.name = "\x1b \x7f \xc2\x9b \xe2\x80\xae";
  const std::string json = to_json(trace);
  EXPECT_NE(json.find("\"\\u001b \\u007f \\u009b \\u202e\""), std::string::npos) << json.substr(0, 200);
  EXPECT_EQ(parse_trace(json), trace);
}

TEST(TraceFile, IsNotWrittenIfItCouldNotBeReadAgain) {
  Trace trace = testing::random_graph(1, 2);
  trace.operators[1].name = "\xff";
  try {
    static_cast<void>(to_json(trace));
    ADD_FAILURE() << "wrote what is not JSON";
  } catch (const BadInput& error) {
    EXPECT_EQ(error.place(), "operators[1].name");
  }
  trace = testing::random_graph(1, 2);
  trace.values[0].bytes = -1;
  EXPECT_THROW(static_cast<void>(to_json(trace)), BadInput);
}

TEST(TraceFile, MayLeaveOutWhatIsAsUsual) {
  const Trace trace = parse_trace(trace_with(R"(,"operators":[{"outputs":[0]}],"values":[{"bytes":4,"maker":0}],
                                               "moments":[{"runs":0},{}])"));
  EXPECT_EQ(trace.name, "");
  EXPECT_EQ(trace.operators[0].cost, 0);
  EXPECT_TRUE(trace.operators[0].replayable);
  EXPECT_FALSE(trace.values[0].held);
  EXPECT_FALSE(trace.moments[1].runs);
  EXPECT_EQ(parse_trace(trace_with(nothing)), Trace{});
}

TEST(TraceFile, MayHaveItsKeysInAnyOrder) {
  const std::string json = R"( { "tiers" : [ ] , "values":[{"maker":0,"bytes":1}],"name":"x",
    "moments":[{"other":7,"runs":0}], "operators":[{"outputs":[0]}], "version":1, "format":"reprise-trace" } )";
  const Trace trace = parse_trace(json);
  EXPECT_EQ(trace.name, "x");
  EXPECT_EQ(trace.moments[0].other, 7);
  EXPECT_EQ(parse_trace("\xef\xbb\xbf" + json), trace);  // after a byte order mark
}

TEST(TraceFile, UnderstandsEscapes) {
  const Trace trace = parse_trace(trace_with(R"(,"name":"\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83c\udfB5\u0000")" + nothing));
  EXPECT_EQ(trace.name, std::string("\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xb5") + '\0');
}

TEST(TraceFile, WithAnUnknownKeyIsRejected) {
  expect_error(trace_with(nothing + R"(,"colour":1)"), "colour", "unknown key");
  expect_error(trace_with(nothing + R"(,"what is this\n":1)"), "[\"what is this?\"]", "unknown key");
  expect_error(trace_with(R"(,"operators":[{"cost":1},{"costs":2}],"values":[],"moments":[])"), "operators[1].costs",
               "unknown key");
  expect_error(trace_with(R"(,"operators":[],"values":[{"bytes":1,"Maker":0}],"moments":[])"), "values[0].Maker",
               "unknown key");
  expect_error(trace_with(nothing + R"(,"tiers":[{"name":"disk","entries":[]}])"), "tiers[0].entries", "unknown key");
}

TEST(TraceFile, WithAKeyTwiceIsRejected) {
  expect_error(trace_with(nothing + R"(,"values":[])"), "values", "twice");
  expect_error(trace_with(R"(,"operators":[],"values":[{"bytes":1,"bytes":2}],"moments":[])"), "values[0].bytes",
               "twice");
}

TEST(TraceFile, WithAMissingKeyIsRejected) {
  expect_error(trace_with(R"(,"operators":[],"values":[])"), "moments", "missing");
  expect_error(trace_with(R"(,"operators":[],"moments":[])"), "values", "missing");
  expect_error(trace_with(R"(,"values":[],"moments":[])"), "operators", "missing");
  expect_error(trace_with(R"(,"operators":[],"values":[{"maker":0}],"moments":[])"), "values[0]", "'bytes' is missing");
  expect_error(R"({"format":"reprise-trace"})", "version", "missing");
}

TEST(TraceFile, OfAnotherVersionOrFormatIsRejected) {
  expect_error(R"({"format":"reprise-trace","version":2,"new":1})", "version", "2 is not supported, only 1");
  expect_error(R"({"new":1,"version":0,"format":"reprise-trace"})", "version", "0 is not supported");
  expect_error(R"({"format":"reprise-trace","version":"1"})", "version", "expected a number, found a string");
  expect_error(R"({"format":"reprise-plan","version":1,"budget_bytes":0,"actions":[]})", "format",
               "this is a plan, not a trace");
  expect_error(R"({"format":"GeoJSON"})", "format", "'GeoJSON' is not a known format");
  expect_error(R"({"a":1})", "", "neither a trace nor a plan nor a graph");
  expect_error("[]", "", "neither a trace nor a plan nor a graph");
  expect_error("17", "", "neither a trace nor a plan nor a graph");
  expect_error("{}", "", "neither a trace nor a plan nor a graph");
}

TEST(TraceFile, WithTheWrongKindOfThingSomewhereIsRejected) {
  expect_error(trace_with(R"(,"operators":{},"values":[],"moments":[])"), "operators",
               "expected a list, found an object");
  expect_error(trace_with(R"(,"operators":[7],"values":[],"moments":[])"), "operators[0]",
               "expected an object, found a number");
  expect_error(trace_with(R"(,"operators":[{"name":null}])"), "operators[0].name", "expected a string, found null");
  expect_error(trace_with(R"(,"operators":[{"inputs":[0,"1"]}])"), "operators[0].inputs[1]",
               "expected a number, found a string");
  expect_error(trace_with(R"(,"operators":[{"replayable":1}])"), "operators[0].replayable",
               "expected true or false, found a number");
  expect_error(trace_with(R"(,"values":[{"bytes":1,"held":[1]}])"), "values[0].held",
               "expected [first moment, last moment]");
  expect_error(trace_with(R"(,"tiers":[{"name":"a","in_budget":true,"values":[[1,2,3]]}])"), "tiers[0].values[0]",
               "expected [value, bytes, put_cost, get_cost]");
  expect_error(trace_with(R"(,"tiers":[{"name":"a","in_budget":false,"values":[[1,2,3,4,5]]}])"), "tiers[0].values[0]",
               "or [value, bytes, put_cost, get_cost, put_time, get_time]");
  expect_error(trace_with(R"(,"tiers":[{"name":"a","in_budget":false,"values":[[1,2,3,4,5,6,7]]}])"),
               "tiers[0].values[0][6]", "one item too many");
  expect_error(trace_with(R"(,"tiers":[{"name":"a","in_budget":false,"duplex":2,"values":[]}])"), "tiers[0].duplex",
               "expected true or false, found a number");
  expect_error(trace_with(R"(,"tiers":[{"name":"a","values":[]}])"), "tiers[0]", "'in_budget' is missing");
}

TEST(TraceFile, WithNumbersThatCannotBeIsRejected) {
  const auto value_with = [](const std::string& bytes) { return trace_with(R"(,"values":[{"bytes":)" + bytes + "}]"); };
  expect_error(value_with("1.5"), "values[0].bytes", "expected a whole number, found 1.5");
  expect_error(value_with("1e6"), "values[0].bytes", "expected a whole number, found 1e6");
  expect_error(value_with("99999999999999999999"), "values[0].bytes", "too large for a number");
  expect_error(value_with("-"), "line 1, column 58 (values[0].bytes)", "not JSON");
  expect_error(value_with("NaN"), "line 1, column 58 (values[0].bytes)", "NaN is not a JSON number");
  expect_error(value_with("-Infinity"), "line 1, column 58 (values[0].bytes)", "-Infinity is not a JSON number");
  expect_error(value_with("007"), "line 1, column 59 (values[0].bytes)", "starts with 0");
  expect_error(trace_with(R"(,"operators":[{"cost":1e999}])"), "operators[0].cost", "too large for a number");
  expect_error(trace_with(R"(,"operators":[{"inputs":[3000000000]}])"), "operators[0].inputs[0]",
               "3000000000 is not an id");
  expect_error(trace_with(R"(,"operators":[{"inputs":[-1]}])"), "operators[0].inputs[0]", "-1 is not an id");
  expect_error(trace_with(R"(,"operators":[{"inputs":[1.0]}])"), "operators[0].inputs[0]", "whole number");
}

TEST(TraceFile, ThatContradictsItselfIsRejectedWithItsOwnWordsForThePlace) {
  expect_error(trace_with(R"(,"operators":[],"values":[{"bytes":-4}],"moments":[])"), "values[0].bytes", "-4");
  expect_error(trace_with(R"(,"operators":[],"values":[{"bytes":4}],"moments":[],
                            "tiers":[{"name":"a","in_budget":true,"values":[[0,1,1,1],[1,1,1,1]]}])"),
               "tiers[0].values[1]", "1 is not in values");
  expect_error(trace_with(nothing + R"(,"tiers":[{"name":"a","capacity_bytes":-1,"in_budget":true,"values":[]}])"),
               "tiers[0].capacity_bytes", "-1");
}

TEST(TraceFile, ThatIsCutOffAnywhereIsRejected) {
  const std::string json = to_json(testing::random_trace(3));
  for (std::size_t length = 0; length + 2 < json.size(); ++length) {  // the last two are '}' and a newline
    try {
      static_cast<void>(parse_trace(json.substr(0, length)));
      FAIL() << "accepted " << length << " of " << json.size();
    } catch (const BadInput& error) {
      ASSERT_NE(error.place().find("line "), std::string::npos) << length << ": " << error.what();
    }
  }
  expect_error("", "line 1, column 1", "it is empty");
  expect_error("{\"format\":\n\"repr", "line 2, column 6 (format)", "truncated?");
}

TEST(TraceFile, WithSomethingBehindItsEndIsRejected) {
  expect_error(trace_with(nothing) + " x", "line 1, column 80", "expected the end, found 'x'");
  expect_error(trace_with(nothing) + trace_with(nothing), "line 1, column 79", "expected the end");
}

TEST(TraceFile, ThatIsNoJsonIsRejected) {
  expect_error("hello", "line 1, column 1", "not JSON: expected a value, found 'h'");
  expect_error(std::string("\x7f"
                           "ELF\0\0",
                           6),
               "line 1, column 1", "not JSON");
  expect_error("{'format':1}", "line 1, column 2", "expected a key in quotes");
  expect_error("{\"a\" 1}", "line 1, column 6 (a)", "expected ':'");
  expect_error("{\"a\":1 \"b\":2}", "line 1, column 8 (a)", "expected ',' or '}'");
  expect_error("{\"a\":[1,]}", "line 1, column 9 (a[1])", "expected a value");
  expect_error("{\"a\":1,}", "line 1, column 8", "expected a key in quotes");
  expect_error("{\"a\":\"\x01\"}", "line 1, column 7 (a)", "control character");
  expect_error("{\"a\":\"\xc0\x80\"}", "line 1, column 7 (a)", "not UTF-8");
  expect_error("{\"a\":\"\\x\"}", "line 1, column 8 (a)", "an escape");
  expect_error("{\"a\":\"\\ud800\"}", "line 1, column 13 (a)", "surrogate");
  expect_error("{\"a\":nule}", "line 1, column 9 (a)", "'null'");
}

TEST(TraceFile, ThatIsNestedDeeplyIsRejectedAndDoesNotCrash) {
  for (const std::string piece : {"[", "{\"a\":"}) {
    std::string json = R"({"cost":[],"size":[],"edges":[],"ignored":)";
    for (int i = 0; i < 1000000; ++i) json += piece;
    try {
      static_cast<void>(parse_trace(json));
      ADD_FAILURE() << "accepted";
    } catch (const BadInput& error) {
      EXPECT_NE(error.reason().find("inside each other"), std::string::npos);
      EXPECT_LT(std::string(error.what()).size(), 500u);
    }
  }
}

TEST(TraceFile, IsNamedInErrors) {
  const TemporaryFolder folder;
  const auto path = folder.write("wrong.json", trace_with(R"(,"operators":[],"values":[{"bytes":-4}],"moments":[])"));
  try {
    static_cast<void>(read_trace(path));
    ADD_FAILURE() << "no error";
  } catch (const BadInput& error) {
    EXPECT_EQ(error.file(), path.string());
    EXPECT_EQ(std::string(error.what()), path.string() + ": values[0].bytes: -4 bytes are negative");
  }
}

TEST(TraceFile, ThatIsMissingOrAFolderIsAnErrorThatSaysSo) {
  const TemporaryFolder folder;
  const auto reason = [](const std::filesystem::path& path) -> std::string {
    try {
      static_cast<void>(read_trace(path));
    } catch (const BadInput& error) {
      EXPECT_EQ(error.file(), path.string());
      return error.reason();
    }
    return "no error";
  };
  EXPECT_EQ(reason(folder / "nothing.json"), "cannot be read: No such file or directory");
  EXPECT_EQ(reason(folder.path()), "it is a folder, not a file");
}

TEST(TraceFile, IsWrittenAsAWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const Trace first = testing::random_trace(1), second = testing::random_trace(2);
  const auto path = folder / "trace.json";
  write_trace(path, first);
  EXPECT_EQ(read_trace(path), first);
  write_trace(path, second);
  EXPECT_EQ(read_trace(path), second);
  Trace wrong = first;
  wrong.values[0].bytes = -1;
  EXPECT_THROW(write_trace(path, wrong), BadInput);
  EXPECT_EQ(read_trace(path), second);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "something was left behind";
}

TEST(TraceFile, KeepsItsPermissionsWhenWrittenAgain) {
  const TemporaryFolder folder;
  const auto path = folder.write("trace.json", "old");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  write_trace(path, testing::random_trace(1));
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(TraceFile, IsWrittenThroughALink) {
  const TemporaryFolder folder;
  folder.write("real.json", "old");
  std::filesystem::create_symlink("real.json", folder / "link.json");
  write_trace(folder / "link.json", testing::random_trace(1));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.json"));
  EXPECT_EQ(read_trace(folder / "real.json"), testing::random_trace(1));
}

TEST(TraceFile, ThatCannotBeWrittenIsAnErrorThatNamesItAndTheReason) {
  const TemporaryFolder folder;
  const auto what = [](const std::filesystem::path& path) -> std::string {
    try {
      write_trace(path, testing::random_trace(1));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto missing = folder / "no/such/trace.json";
  EXPECT_EQ(what(missing), missing.string() + ": cannot be written: No such file or directory");
  EXPECT_EQ(what(folder.path()), folder.path().string() + ": cannot be written: it is a folder");
  EXPECT_EQ(what("/dev/full"), "/dev/full: cannot be written: No space left on device");
}

TEST(TraceFile, OfAHundredThousandOperatorsIsReadAndWrittenInNoTime) {
  const Trace trace = testing::random_graph(1, 100000);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_trace(to_json(trace)), trace);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));  // 0.2 s, without sanitizers
}

}  // namespace
}  // namespace reprise
