// reprise run: a program that knows nothing of Reprise, on the simulated accelerator.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "programs.h"
#include "reprise/trace/trace.h"
#include "reprise_process.h"

namespace reprise {
namespace {

using testing::Outcome;
using testing::run_command;
using testing::run_program;

TEST(PreloadedOnADevice, UsesMemoryOfTheHostBelowIt) {
  const Outcome plain = run_program({REPRISE_PROGRAM_TRAINER_ON_DEVICE, "0"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  const auto summary_of = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words = {"run", "--summary", "json"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", REPRISE_PROGRAM_TRAINER_ON_DEVICE, "7"});
    const Outcome outcome = run_command(words);
    EXPECT_EQ(outcome.code, 7) << outcome.err;
    EXPECT_EQ(outcome.out, plain.out);
    return nlohmann::json::parse(outcome.err);
  };
  const Bytes budget = summary_of({"--device", "privateuseone:0"}).at("peak_bytes").get<Bytes>() * 6 / 10;
  const Bytes host = 16 << 20;
  for (const std::vector<std::string>& named :
       {std::vector<std::string>{"--budget", std::to_string(budget), "--device", "privateuseone:0"},
        {"--budgets", "cpu=1GiB,privateuseone:0=" + std::to_string(budget)}}) {
    std::vector<std::string> options = named;
    options.insert(options.end(), {"--host", std::to_string(host)});
    const auto summary = summary_of(options);
    EXPECT_GT(summary.at("host_peak_bytes"), 0) << "whether the last plan uses it depends on the machine";
    EXPECT_LE(summary.at("host_peak_bytes"), host);
    const auto& devices = summary.at("devices");
    EXPECT_EQ(devices.back().at("device"), "sim:0");
    EXPECT_LE(devices.back().at("peak_bytes"), budget);
    EXPECT_EQ(summary.at("before_meter_bytes"), 0) << "parameters of the device are in the budget";
  }
}

}  // namespace
}  // namespace reprise
