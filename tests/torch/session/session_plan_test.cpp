// Traces and plans of sessions: found in the background, given by the user, kept in a folder, left when steps differ.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "reprise/plan/planner.h"
#include "reprise/report/inspection.h"
#include "reprise/simulate/simulate.h"
#include "reprise/torch/session.h"
#include "reprise/torch/session_report.h"
#include "reprise/trace/files.h"
#include "support/temporary_folder.h"
#include "torch/here.h"
#include "torch/small_training.h"

namespace reprise {
namespace {

using testing::difference;
using testing::options_here;
using testing::SmallTraining;
using testing::soon;
using testing::TemporaryFolder;
using testing::within;

PlanResult planned(const Trace& trace, Bytes budget) {
  PlanOptions options;
  options.budget = budget;
  options.time_limit = soon;
  return make_plan(trace, options);
}

SessionOptions kept_in(const std::filesystem::path& folder, Bytes budget) {
  SessionOptions options = within(budget, soon);
  options.plans = folder;
  return options;
}

void train(Session& session, SmallTraining& training, std::int64_t rows = 0) {
  {
    auto step = session.step();
    EXPECT_EQ(difference(training.expected(rows), training.step(rows)), "");
    training.drop_gradients();
  }
  EXPECT_LE(session.summary().peak_last_step(), session.budget());
}

// Until a step has followed a plan, at most so many steps. Other bytes may differ in the second step and then the trace
// is planned once more.
bool follows(Session& session, SmallTraining& training, int steps = 4) {
  for (int i = 0; i < steps; ++i) {
    train(session, training);
    if (session.summary().followed_plan) return true;
    session.wait_for_plan();
  }
  return false;
}

std::size_t files_in(const TemporaryFolder& folder) {
  const std::filesystem::directory_iterator files(folder.path());
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(SessionTrace, IsThereAfterACompleteStepAndPassesTheCheck) {
  SmallTraining training;
  Session session(options_here());
  EXPECT_EQ(session.trace(), std::nullopt);
  train(session, training);
  const std::optional<Trace> trace = session.trace();
  ASSERT_TRUE(trace.has_value());
  EXPECT_NO_THROW(check(*trace));
  EXPECT_GE(trace->operators.size(), 24u) << "six layers of four operators";
  EXPECT_GE(inspect(*trace).events, 24u) << "and a node of backward for each";
  EXPECT_GT(trace->total_cost(), 0);
}

TEST(SessionTrace, HasThePeakOfThePlainRun) {
  SmallTraining training;
  Session session(options_here());
  train(session, training);
  const Trace trace = session.trace().value();
  const Simulation kept = simulate(trace, keep_everything(trace), {.check_budget = false});
  EXPECT_TRUE(kept.valid());
  EXPECT_NEAR(static_cast<double>(kept.peak), static_cast<double>(training.peak()),
              0.005 * static_cast<double>(training.peak()));
  EXPECT_EQ(session.summary().peak_if_kept, session.summary().peak_last_step()) << "nothing was evicted";
}

// Batch normalization counts its batches with an operator that only has effects, in forward.
TEST(SessionTrace, HasNodesOfBackwardAndNothingElseForEvents) {
  torch::nn::Sequential model(torch::nn::Linear(8, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 8));
  Session session(options_here());
  {
    auto step = session.step();
    model->forward(torch::randn({16, 8})).pow(2).mean().backward();
  }
  const Trace trace = session.trace().value();
  Id events = 0;
  for (Id m = 0; m < trace.moment_count(); ++m) {
    const bool is_node = trace.label(m).find("::") == std::string::npos || trace.label(m).starts_with("torch::");
    EXPECT_EQ(trace.is_event(m), is_node) << trace.label(m);
    events += is_node;
  }
  EXPECT_GE(events, 5) << "of the mean, the power, the normalization and two layers";
  EXPECT_EQ(inspect(trace).events, static_cast<std::size_t>(events));
}

TEST(SessionTrace, NamesTheModulesOfOperatorsThatReadTheirParameters) {
  SmallTraining training;
  Session session(options_here());
  session.label_modules(*training.model());
  train(session, training);
  std::set<std::string> modules;
  for (const Operator& op : session.trace().value().operators) modules.insert(op.module);
  EXPECT_GE(modules.size(), 6u) << "six layers, and operators without parameters";
}

TEST(SessionReport, IsAPageAboutTheLastStep) {
  SmallTraining training;
  Session session(options_here());
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "page.html";
  EXPECT_THROW(write_report(path, session), BadInput);
  train(session, training);
  write_report(path, session, {.title = "Seven layers", .time_limit = std::chrono::milliseconds(200)});
  std::ifstream file(path);
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(page.find("<h1>Seven layers</h1>"), std::string::npos);
  EXPECT_NE(page.find("</html>"), std::string::npos);
  EXPECT_THROW(write_report(path / "none" / "page.html", session, {.time_limit = {}}), Error);
}

// What is saved for a result that nobody uses goes without backward, at the end of the step.
TEST(SessionTrace, IsThereAlsoWhereBackwardDoesNotReachAPartOfTheGraph) {
  SmallTraining training;
  Session session(within(training.budget(0.7), soon));
  for (int i = 0; i < 4; ++i) {
    {
      auto step = session.step();
      {
        const at::Tensor loss = training.loss();
        const at::Tensor beside = loss.sigmoid();
        loss.backward();
      }
      training.drop_gradients();
    }
    session.wait_for_plan();
  }
  EXPECT_EQ(session.summary().traces, 1);
  EXPECT_TRUE(session.plan().has_value());
}

TEST(SessionTrace, HasThePlanThatIsFollowedBesideIt) {
  SmallTraining training;
  Session session(within(training.budget(0.7), soon));
  EXPECT_EQ(session.plan(), std::nullopt);
  ASSERT_TRUE(follows(session, training));
  const Simulation proof = simulate(session.trace().value(), session.plan().value());
  EXPECT_TRUE(proof.valid());
  EXPECT_EQ(proof.peak, session.summary().promised_peak);
}

TEST(SessionTrace, CanBePlannedAndSaved) {
  SmallTraining training;
  Session session(options_here());
  train(session, training);
  const Trace trace = session.trace().value();
  const PlanResult result = planned(trace, training.budget(0.6));
  EXPECT_TRUE(result.has_plan());
  const TemporaryFolder folder;
  write_trace(folder / "trace.json", trace);
  EXPECT_EQ(read_trace(folder / "trace.json"), trace);
}

TEST(SessionPlan, IsFollowedFromThenOn) {
  SmallTraining training;
  Session session(within(training.budget(0.6), soon));
  train(session, training);
  EXPECT_FALSE(session.summary().followed_plan);
  EXPECT_GT(session.summary().replays, 0);
  session.wait_for_plan();
  ASSERT_TRUE(follows(session, training));
  train(session, training);
  const Summary summary = session.summary();
  EXPECT_TRUE(summary.followed_plan);
  EXPECT_FALSE(summary.planning);
  EXPECT_EQ(summary.traces, 1);
  EXPECT_EQ(summary.plans, 1);
  EXPECT_EQ(summary.divergences, 0);
  ASSERT_TRUE(summary.promised_peak && summary.promised_overhead && summary.gap);
  EXPECT_LE(*summary.promised_peak, session.budget());
  EXPECT_LE(summary.peak_last_step(), *summary.promised_peak) << "never more than promised";
  EXPECT_GE(*summary.gap, 0);
  EXPECT_GT(*summary.promised_overhead, 0);
}

TEST(SessionPlan, IsNotMadeIfThereIsNoTimeForIt) {
  SmallTraining training;
  Session session(within(training.budget(0.6)));
  for (int i = 0; i < 3; ++i) {
    train(session, training);
    session.wait_for_plan();
    EXPECT_FALSE(session.summary().followed_plan);
  }
  EXPECT_EQ(session.summary().plans, 0);
}

TEST(SessionPlan, IsCancelledIfTheSessionIsGoneSoThatTheNextOneGetsIts) {
  SmallTraining training(60);  // too many layers to find the best plan at once
  const auto start = std::chrono::steady_clock::now();
  {
    Session gone(within(training.budget(0.6), std::chrono::minutes(10)));
    {
      const auto step = gone.step();
      (void)training.step();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(gone.summary().planning);
  }
  Session session(within(training.budget(0.6), std::chrono::milliseconds(100)));
  {
    const auto step = session.step();
    (void)training.step();
  }
  session.wait_for_plan();
  EXPECT_TRUE(session.plan());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(5));
}

TEST(SessionPlan, IsKeptForEveryShape) {
  SmallTraining training;
  Session session(within(training.budget(0.6), soon));
  for (int i = 0; i < 3; ++i) {
    for (const int rows : {256, 240}) {
      train(session, training, rows);
      session.wait_for_plan();
    }
  }
  for (const int rows : {240, 256, 256, 240}) {
    train(session, training, rows);
    EXPECT_TRUE(session.summary().followed_plan) << rows;
  }
  EXPECT_EQ(session.summary().traces, 2);
  EXPECT_EQ(session.summary().plans, 2);
}

TEST(SessionPlan, IsLeftWhenAStepIsDifferentAndTheSummarySaysWhy) {
  SmallTraining training;
  Session session(within(training.budget(0.6), soon));
  ASSERT_TRUE(follows(session, training));
  const std::int64_t steps = session.summary().steps;
  train(session, training, 200);
  EXPECT_FALSE(session.summary().followed_plan);
  training.model()->eval();
  {
    auto step = session.step();
    (void)training.step();
    training.drop_gradients();
  }
  training.model()->train();
  const Summary summary = session.summary();
  EXPECT_GE(summary.divergences, 1);
  ASSERT_FALSE(summary.last_divergences.empty());
  for (const Divergence& divergence : summary.last_divergences) {
    EXPECT_GT(divergence.step, steps);
    EXPECT_NE(divergence.why.find("aten::"), std::string::npos) << divergence.why;
  }
}

TEST(SessionPlan, IsMadeAgainForAnotherBudget) {
  SmallTraining training;
  Session session(within(training.budget(0.7), soon));
  ASSERT_TRUE(follows(session, training));
  session.budget(training.budget(0.5));
  ASSERT_TRUE(follows(session, training));
  ASSERT_TRUE(session.summary().promised_peak.has_value());
  EXPECT_LE(*session.summary().promised_peak, session.budget());
}

TEST(SessionPlan, IsMadeAgainWhenOtherBytesGrow) {
  SmallTraining training;
  const Bytes budget = training.budget(0.7);
  Session session(within(budget, soon));
  ASSERT_TRUE(follows(session, training));
  const auto ballast = torch::zeros({(training.peak() - training.level()) / 4 / 5});
  EXPECT_TRUE(follows(session, training)) << "with another plan";
  EXPECT_LE(session.summary().peak(), budget);
}

TEST(SessionPlan, ThatAsksForNothingIsMadeAgainWhenOtherBytesGrow) {
  SmallTraining training;
  Session session(within(3 * training.peak(), soon));
  ASSERT_TRUE(follows(session, training));
  EXPECT_EQ(*session.summary().promised_overhead, 0);
  const Bytes left = (training.peak() - training.level()) * 7 / 10;
  const auto ballast = torch::zeros({(session.budget() - training.level() - left) / 4});
  for (int i = 0; i < 24 && *session.summary().promised_overhead == 0; ++i) {
    train(session, training);
    session.wait_for_plan();
  }
  EXPECT_GT(*session.summary().promised_overhead, 0) << "other bytes are measured every 16 steps";
  EXPECT_EQ(session.summary().divergences, 0);
}

TEST(SessionPlan, OfTheUserIsFollowed) {
  SmallTraining training;
  const Bytes budget = training.budget(0.6);
  Session session(within(budget));
  train(session, training);
  train(session, training);
  const PlanResult result = planned(session.trace().value(), budget);
  ASSERT_TRUE(result.has_plan());
  session.follow(result.plan);
  train(session, training);
  const Summary summary = session.summary();
  EXPECT_TRUE(summary.followed_plan);
  EXPECT_EQ(summary.promised_peak, result.simulation.peak);
  train(session, training, 100);
  EXPECT_FALSE(session.summary().followed_plan) << "it was made for something else";
}

TEST(SessionPlan, OfTheUserHasToBeValid) {
  SmallTraining training;
  Session session(within(training.budget(0.6)));
  train(session, training);
  Plan plan = keep_everything(session.trace().value());
  plan.budget = 1;
  EXPECT_THROW(session.follow(plan), BadInput);
  plan.budget = session.budget();
  plan.actions.push_back(Action::drop(1'000'000));
  EXPECT_THROW(session.follow(plan), BadInput);
  train(session, training);
}

TEST(SessionPlans, AreFollowedByTheNextSessionFromItsSecondStepOn) {
  const TemporaryFolder folder;
  SmallTraining training;
  const SessionOptions options = kept_in(folder / "deep" / "plans", training.budget(0.6));
  {
    Session session(options);
    ASSERT_TRUE(follows(session, training));
  }
  EXPECT_FALSE(std::filesystem::is_empty(options.plans));
  Session session(options);
  train(session, training);
  train(session, training);
  EXPECT_TRUE(session.summary().followed_plan);
}

TEST(SessionPlans, OfOtherModelsAndBudgetsAreIgnored) {
  const TemporaryFolder folder;
  SmallTraining training, other(5, 48, 256);
  {
    Session session(kept_in(folder.path(), other.budget(0.7)));
    ASSERT_TRUE(follows(session, other));
  }
  ASSERT_GT(files_in(folder), 0u);
  for (const double share : {0.5, 0.8}) {
    Session session(kept_in(folder.path(), training.budget(share)));
    EXPECT_TRUE(follows(session, training));
  }
}

TEST(SessionPlans, ThatAreDamagedAreIgnored) {
  const TemporaryFolder folder;
  SmallTraining training;
  const SessionOptions options = kept_in(folder.path(), training.budget(0.6));
  {
    Session session(options);
    ASSERT_TRUE(follows(session, training));
  }
  ASSERT_GT(files_in(folder), 0u);
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) files.push_back(file.path());
  for (const auto& file : files) std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  folder.write("noise.json", "{\"not\": \"a plan\"");
  folder.write("readme.txt", "nothing to see here");
  std::filesystem::create_directory(folder / "folder.json");
  Session session(options);
  EXPECT_TRUE(follows(session, training));
}

TEST(SessionPlans, AFolderThatCannotBeWrittenIsRefusedAtOnce) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "no folder";
  for (const char* name : {"file", "file/below"}) {
    try {
      const Session session(kept_in(folder / name, 1 << 20));
      ADD_FAILURE() << name;
    } catch (const BadOption& error) {
      EXPECT_NE(std::string(error.what()).find("option plans is '"), std::string::npos) << error.what();
    }
  }
}

TEST(SessionPlans, APlanThatCannotBeWrittenIsFollowedAllTheSame) {
  const TemporaryFolder folder;
  SmallTraining training;
  Session session(kept_in(folder / "plans", training.budget(0.6)));
  std::filesystem::remove(folder / "plans");
  std::ofstream(folder / "plans") << "no folder any more";
  EXPECT_TRUE(follows(session, training));
  EXPECT_EQ(session.summary().divergences, 0);
  ASSERT_FALSE(session.summary().last_notes.empty());
  EXPECT_NE(session.summary().last_notes.back().what.find("option plans"), std::string::npos);
}

}  // namespace
}  // namespace reprise
