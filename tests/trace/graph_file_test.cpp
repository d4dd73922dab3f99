#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "paths.h"
#include "reprise/trace/error.h"
#include "reprise/trace/files.h"

namespace reprise::graph_file_test {
namespace {

void expect_error(const std::string& json, const std::string& place, const std::string& words) {
  try {
    static_cast<void>(parse_trace(json));
    ADD_FAILURE() << "no error for " << json;
  } catch (const BadInput& error) {
    EXPECT_EQ(error.place(), place) << error.what();
    EXPECT_NE(error.reason().find(words), std::string::npos) << error.what();
  }
}

TEST(GraphFile, BecomesATraceWithOneOperatorValueAndMomentForEachNode) {
  const Trace trace =
      parse_trace(R"({"name":"triangle","cost":[1,2.5,0],"size":[10,20,1e3],"edges":[[0,1],[1,2],[0,2]]})");
  EXPECT_EQ(trace.name, "triangle");
  ASSERT_EQ(trace.operators.size(), 3u);
  EXPECT_EQ(trace.operators[1].cost, 2.5);
  EXPECT_EQ(trace.operators[2].inputs, (std::vector<Id>{1, 0}));
  EXPECT_EQ(trace.operators[2].name, "node 2");
  EXPECT_EQ(trace.values[2].bytes, 1000);
  for (Id node = 0; node < 3; ++node) {
    EXPECT_EQ(trace.operators[node].outputs, (std::vector<Id>{node}));
    EXPECT_TRUE(trace.operators[node].replayable);
    EXPECT_EQ(trace.values[node].maker, node);
    EXPECT_EQ(trace.moments[node].runs, node);
  }
  EXPECT_EQ(parse_trace(to_json(trace)), trace);
}

TEST(GraphFile, CountsARepeatedEdgeOnce) {
  const Trace trace = parse_trace(R"({"cost":[1,1,1],"size":[1,1,1],"edges":[[0,2],[1,2],[0,2],[0,1],[0,2]]})");
  EXPECT_EQ(trace.operators[2].inputs, (std::vector<Id>{0, 1}));
  EXPECT_EQ(trace.operators[1].inputs, (std::vector<Id>{0}));
}

TEST(GraphFile, NamesItsOperatorsWhereItCan) {
  const Trace trace = parse_trace(R"({"cost":[1,1,1,1],"size":[1,1,1,1],"edges":[],"op":["conv","",null,{"a":[1]}]})");
  EXPECT_EQ(trace.operators[0].name, "conv");
  EXPECT_EQ(trace.operators[1].name, "node 1");
  EXPECT_EQ(trace.operators[2].name, "node 2");
  EXPECT_EQ(trace.operators[3].name, "node 3");
}

TEST(GraphFile, MayHaveAnyOtherKeys) {
  const Trace trace = parse_trace(R"({"format":"mine","version":1e999,"operators":3,"values":{"x":[[]]},"moments":null,
      "tiers":true,"source":"somewhere","cost":[1],"size":[1],"edges":[],"source":"twice"})");
  EXPECT_EQ(trace.operators.size(), 1u);
  EXPECT_TRUE(trace.tiers.empty());
}

TEST(GraphFile, MayBeEmpty) {
  EXPECT_EQ(parse_trace(R"({"cost":[],"size":[],"edges":[]})"), Trace{});
}

TEST(GraphFile, WithIdsThatAreNotTopologicalIsRejected) {
  expect_error(R"({"cost":[1,1],"size":[1,1],"edges":[[0,1],[1,0]]})", "edges[1]",
               "from 1 to 0: the ids are not topological, this is a cycle or a wrong order");
  expect_error(R"({"cost":[1,1],"size":[1,1],"edges":[[1,1]]})", "edges[0]", "not topological");
}

TEST(GraphFile, ThatContradictsItselfIsRejected) {
  expect_error(R"({"cost":[1,1],"size":[1,1],"edges":[[0,2]]})", "edges[0]", "there is no node 2, the graph has 2");
  expect_error(R"({"cost":[1,1],"size":[1],"edges":[]})", "size", "it has 1 items, but cost has 2");
  expect_error(R"({"cost":[1],"size":[1],"edges":[],"op":[]})", "op", "it has 0 items");
  expect_error(R"({"cost":[1],"edges":[]})", "size", "missing");
  expect_error(R"({"size":[1],"edges":[]})", "cost", "missing");
  expect_error(R"({"size":[1],"cost":[1]})", "edges", "missing");
  expect_error(R"({"cost":[1],"cost":[2],"size":[1],"edges":[]})", "cost", "twice");
}

TEST(GraphFile, WithNumbersThatCannotBeIsRejected) {
  expect_error(R"({"cost":[1,-2],"size":[1,1],"edges":[]})", "cost[1]", "-2");
  expect_error(R"({"cost":[1,2],"size":[1,-1],"edges":[]})", "size[1]", "-1");
  expect_error(R"({"cost":[1,2],"size":[1,1.5],"edges":[]})", "size[1]", "expected a whole number, found 1.5");
  expect_error(R"({"cost":[1],"size":[1e30],"edges":[]})", "size[0]", "too large for a number");
  expect_error(R"({"cost":[1],"size":[9223372036854775807],"edges":[]})", "size[0]", "together have to stay below");
  expect_error(R"({"cost":[1e300],"size":[1],"edges":[]})", "cost[0]", "together have to stay below");
  expect_error(R"({"cost":[NaN],"size":[1],"edges":[]})", "line 1, column 10 (cost[0])", "NaN is not a JSON number");
  expect_error(R"({"cost":[null],"size":[1],"edges":[]})", "cost[0]", "expected a number, found null");
  expect_error(R"({"cost":[1],"size":[1],"edges":[[0]]})", "edges[0]", "expected an edge [from, to], found 1 ids");
  expect_error(R"({"cost":[1],"size":[1],"edges":[[0,1,2]]})", "edges[0]", "found 3 ids");
  expect_error(R"({"cost":[1],"size":[1],"edges":[[0,0.5]]})", "edges[0][1]", "whole number");
  expect_error(R"({"cost":[1],"size":[1],"edges":[{"from":0,"to":1}]})", "edges[0]",
               "expected a list, found an object");
}

// The graphs that everything is measured on, where they are there: third-party data, not part of the repository.
TEST(GraphFile, OfOthersIsImportedAsItIs) {
  const char* configured = std::getenv("REPRISE_GRAPHS");
  const std::filesystem::path folder =
      configured ? std::filesystem::path(configured) : std::filesystem::path(REPRISE_SOURCE_DIR) / "../shared/graphs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no graphs in " << folder;
  int graphs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const Trace trace = read_trace(entry.path());
    EXPECT_EQ(trace.name, entry.path().stem().string());
    EXPECT_EQ(parse_trace(to_json(trace)), trace);
    ++graphs;
  }
  EXPECT_GT(graphs, 0);
  const Trace unet = read_trace(folder / "dtr_unet.json");
  EXPECT_EQ(unet.operators.size(), 201u);
  EXPECT_EQ(unet.operators[1].name, "add_");
  EXPECT_EQ(unet.operators[1].cost, 2689120);
  EXPECT_EQ(unet.values[0].bytes, 388497408);
}

}  // namespace
}  // namespace reprise::graph_file_test
