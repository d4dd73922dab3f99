#include "doctor_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/dump_json.h"

namespace reprise::tools {
namespace {

constexpr const char* doctor_summary = "print what is installed, and whether a session works on this machine";

constexpr const char* doctor_description =
    "Checks the machine, the solver behind lower bounds, LibTorch and its allocator, and the library of `reprise "
    "run`; then trains a tiny model inside a budget and compares it, bit for bit, with plain training; and says of "
    "each "
    "accelerator whether its bytes can be limited, and whether what is recomputed there is the same.";

constexpr const char* doctor_footer = R"(Example:
  reprise doctor

Exit codes:
  0  a session works here
  1  it does not; the lines marked with 'no' say why and what to do
  2  wrong usage
)";

const char* mark(Finding::State state) {
  switch (state) {
    case Finding::State::fact: return "   ";
    case Finding::State::good: return "yes";
    case Finding::State::poor: return "but";
    case Finding::State::bad: return "no ";
  }
  return "";
}

const char* name(Finding::State state) {
  switch (state) {
    case Finding::State::fact: return "fact";
    case Finding::State::good: return "good";
    case Finding::State::poor: return "poor";
    case Finding::State::bad: return "bad";
  }
  return "";
}

}  // namespace

void add_doctor_command(CLI::App& app, const std::shared_ptr<DoctorOptions>& options,
                        const std::function<void()>& use) {
  CLI::App* const command = add_command(app, "doctor", doctor_summary, doctor_description, doctor_footer);
  add_json_flag(*command, options->json,
                "Print each finding as one JSON object on one line: what, state (fact, good, poor, bad), answer, "
                "advice.");
  command->callback(use);
}

std::string to_text(const std::vector<Finding>& findings, const DoctorOptions& options) {
  std::string text;
  for (const Finding& finding : findings) {
    if (options.json) {
      text += internal::dump_json({{"what", finding.what},
                                   {"state", name(finding.state)},
                                   {"answer", finding.answer},
                                   {"advice", finding.advice}}) +
              "\n";
      continue;
    }
    text += fmt::format("{}  {:<16}{}\n", mark(finding.state), finding.what, finding.answer);
    if (!finding.advice.empty()) text += fmt::format("{:21}{}\n", "", finding.advice);
  }
  return text;
}

int exit_code(const std::vector<Finding>& findings) {
  const bool bad = std::any_of(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.state == Finding::State::bad; });
  return bad ? exit_refused : exit_done;
}

}  // namespace reprise::tools
