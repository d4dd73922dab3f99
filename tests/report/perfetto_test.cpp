// The timeline for viewers of traces.
#include "reprise/report/perfetto.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "reprise/plan/planner.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"
#include "support/random_plan.h"
#include "support/small_trace.h"

namespace reprise {
namespace {

using Json = nlohmann::json;

TEST(Perfetto, HasEveryActionWithItsTimeAndTheLiveBytes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    testing::Random random(seed);
    const Trace trace = testing::random_trace(seed);
    const Plan plan = testing::random_valid_plan(random, trace);
    const Simulation simulation = simulate(trace, plan);
    const Json json = Json::parse(to_perfetto(trace, plan));
    std::map<int, std::size_t> events;  // by track
    double cost = 0, end = 0;
    Bytes most = 0;
    for (const Json& event : json.at("traceEvents")) {
      for (const char* key : {"name", "ph", "pid", "tid", "ts", "args"}) ASSERT_TRUE(event.contains(key)) << event;
      EXPECT_GE(event["ts"].get<double>(), 0);
      const std::string kind = event["ph"];
      if (kind == "M") continue;
      if (kind == "X") {
        ++events[event["tid"]];
        cost += event.at("dur").get<double>();
        EXPECT_GE(event["ts"].get<double>(), end - 1e-9);  // one after the other
        end = event["ts"].get<double>() + event["dur"].get<double>();
      } else {
        ASSERT_EQ(kind, "C");
        const Bytes bytes = event["args"].at("bytes");
        if (event["name"] == "live bytes") most = std::max(most, bytes);
        if (event["name"] == "budget") EXPECT_EQ(bytes, plan.budget);
      }
    }
    EXPECT_EQ(events[1], trace.moments.size());
    EXPECT_EQ(events[2], simulation.replays);
    EXPECT_EQ(events[3] + events[4], simulation.puts + simulation.gets);
    EXPECT_NEAR(cost, simulation.cost, 1e-9 * simulation.cost);
    EXPECT_EQ(most, simulation.peak);
  }
}

TEST(Perfetto, NamesItsTracksAndKeepsNamesAndModules) {
  testing::SmallTrace small;
  small.trace.name = "a \"net\"";
  small.run({}, {10}, 2.5);
  small.trace.operators[0].name = "conv \\ \xff";  // also what is no text
  small.trace.operators[0].module = "features.0";
  const Json json = Json::parse(to_perfetto(small.trace, keep_everything(small.trace)));
  std::vector<std::string> tracks;
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "thread_name") tracks.push_back(event["args"]["name"]);
    if (event["ph"] != "X") continue;
    EXPECT_EQ(event["name"].get<std::string>().substr(0, 7), "conv \\ ");
    EXPECT_EQ(event["args"]["module"], "features.0");
    EXPECT_EQ(event["dur"], 2.5);
  }
  EXPECT_EQ(tracks, (std::vector<std::string>{"step", "replays", "packing"}));
}

TEST(Perfetto, HasATrackForADisk) {
  testing::SmallTrace small;
  small.run({}, {10}, 2);
  small.run({}, {20}, 2);
  small.event({0});
  small.trace.tiers.push_back({"disk", std::nullopt, false, {{0, 10, 3, 4}}});
  const Plan plan{
      40,
      small.trace.tiers,
      {Action::run(0), Action::put(0, 0), Action::drop(0), Action::run(1), Action::get(0, 0), Action::run(2)}};
  const Json json = Json::parse(to_perfetto(small.trace, plan));
  bool named = false;
  double cost = 0;
  Bytes most = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "thread_name" && event["tid"] == 4) named = event["args"]["name"] == "disk";
    if (event["ph"] == "X" && event["tid"] == 4) cost += event["dur"].get<double>();
    if (event["name"] == "bytes on disk") most = std::max(most, event["args"]["bytes"].get<Bytes>());
  }
  EXPECT_TRUE(named);
  EXPECT_EQ(cost, 7);
  EXPECT_EQ(most, 10);
}

TEST(Perfetto, HasTwoTracksForATierThatPutsAndGetsAtTheSameTime) {
  testing::SmallTrace small;
  small.run({}, {10}, 2);
  small.run({}, {20}, 2);
  small.run({}, {30}, 2);
  small.event({0});
  small.event({1});
  small.trace.tiers.push_back({"host", std::nullopt, false, {{0, 10, 0, 0, 1, 9}, {1, 20, 0, 0, 9, 1}}, true});
  const Plan plan{
      100,
      small.trace.tiers,
      {Action::run(0), Action::put(0, 0), Action::run(1), Action::drop(0), Action::put(1, 0), Action::get(0, 0),
       Action::run(2), Action::run(3), Action::drop(1), Action::get(1, 0), Action::run(4)}};
  const Json json = Json::parse(to_perfetto(small.trace, plan));
  std::map<int, std::string> tracks;
  std::map<std::string, std::vector<std::string>> events;  // by track
  Bytes most = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X") events[tracks.at(event["tid"])].push_back(event["name"].get<std::string>().substr(0, 20));
    if (event["name"] == "bytes on the host") most = std::max(most, event["args"]["bytes"].get<Bytes>());
    EXPECT_NE(event["name"], "bytes on disk");
  }
  EXPECT_EQ(events["host, puts"], (std::vector<std::string>{"copying to the host:", "copying to the host:"}));
  EXPECT_EQ(events["host, gets"], (std::vector<std::string>{"copying from the hos", "copying from the hos"}));
  EXPECT_EQ(most, 30);
}

TEST(Perfetto, RefusesAPlanThatIsNotValid) {
  testing::SmallTrace small;
  small.run({}, {10});
  Plan plan = keep_everything(small.trace);
  plan.budget = 1;
  EXPECT_THROW(static_cast<void>(to_perfetto(small.trace, plan)), BadInput);
}

}  // namespace
}  // namespace reprise
