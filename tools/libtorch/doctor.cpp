#include "libtorch/doctor.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/torch.h>

#include "libtorch/device_check.h"
#include "libtorch/trainer.h"
#include "libtorch/training_text.h"
#include "reprise/torch/session.h"
#include "reprise/trace/amount.h"
#include "torch/libtorch/version_check.h"
#include "torch/memory/meter.h"

namespace reprise::tools {
using namespace internal;
namespace {

using State = Finding::State;

// Whether docs/versions.json had this version when the command was built: a definition of this file's.
constexpr bool tried = REPRISE_LIBTORCH_TRIED;

Finding libtorch() {
  const std::string answer =
      running_libtorch() + ", " + at::get_cpu_capability() + ", " + std::to_string(at::get_num_threads()) + " threads";
  if (!runs_as_compiled()) {
    return {State::bad, "LibTorch", answer + ", but this reprise was compiled against " + compiled_libtorch(),
            "build Reprise with the LibTorch that is used, or use " + compiled_libtorch()};
  }
  if (tried) return {State::good, "LibTorch", answer, ""};
  return {State::poor, "LibTorch", answer + ": Reprise was not tried with this version",
          "what follows tries it now; docs/versions.md has the versions that were tried"};
}

Finding allocator() {
  if (meter::is_installed()) return {State::good, "allocator", "Reprise's meter is LibTorch's CPU allocator", ""};
  return {State::bad, "allocator", "another library has put its own CPU allocator in front of Reprise's meter",
          "do not load that library, or use sessions without a budget"};
}

// Every printable character, over and over.
Text any_text() {
  std::string text;
  while (text.size() < 4096) {
    for (char c = ' '; c <= '~'; ++c) text += c;
  }
  return Text(text);
}

// Twelve steps of a tiny model, plainly and in six tenths of what that needs.
Finding session() try {
  const Text text = any_text();
  TrainerOptions options;
  options.model = {text.vocabulary(), 2, 32, 2, 32, 0.1};
  options.batch = 16;
  constexpr int steps = 12;
  Bytes plain_peak = 0;
  std::uint64_t expected = 0;
  {
    Trainer trainer(options, text);
    for (int i = 0; i < steps; ++i) plain_peak = std::max(plain_peak, trainer.step(nullptr).peak);
    expected = trainer.fingerprint();
  }
  SessionOptions session_options;
  session_options.device = "cpu";
  const Bytes budget = plain_peak * 6 / 10;
  session_options.budget = budget;
  session_options.planning_time = std::chrono::milliseconds(500);
  session_options.verify = Verify::always;
  Session session(session_options);
  Trainer trainer(options, text);
  Bytes peak = 0;
  for (int i = 0; i < steps; ++i) {
    peak = std::max(peak, trainer.step(&session).peak);
    if (i == 4) session.wait_for_plan();
  }
  const std::string bytes = format_bytes(peak) + " instead of " + format_bytes(plain_peak);
  if (trainer.fingerprint() != expected) {
    return {State::bad, "session", "a tiny model trained in a budget is not the one that was trained plainly",
            "please report this as a defect, with the lines above"};
  }
  if (peak > budget) {
    return {State::bad, "session", "the peak passed the budget: " + bytes,
            "please report this as a defect, with the lines above"};
  }
  return {State::good, "session",
          "works: " + std::to_string(steps) + " steps of a tiny model in " + bytes + ", the same bit for bit", ""};
} catch (const std::exception& error) {
  return {State::bad, "session", std::string("does not work: ") + error.what(), ""};
}

// The CPU is what `session` has tried.
std::vector<Finding> devices() {
  std::vector<Finding> all;
  for (const c10::Device device : accelerators()) {
    const std::string name = device.str();
    const DeviceCheck check = check_device(device);
    if (!check.why_not_counted.empty()) {
      all.push_back({State::poor, name, "a session cannot limit its bytes: " + check.why_not_counted,
                     "sessions that name the device 'cpu' work beside it"});
    } else if (!check.failure.empty() || !check.exact || check.replays == 0) {
      const std::string what = !check.failure.empty() ? check.failure
                               : check.exact          ? "nothing was replayed"
                                                      : "what was recomputed has other bits";
      all.push_back({State::bad, name, "a tiny model does not train there: " + what,
                     "please report this as a defect, with the lines above"});
    } else {
      all.push_back({State::good, name,
                     "its bytes can be limited; " + std::to_string(check.replays) +
                         " operators of a step were replayed, the same bit for bit; " +
                         (check.why_no_host.empty() ? "memory of the host can be used below it"
                                                    : "no memory of the host below it: " + check.why_no_host),
                     ""});
    }
  }
  const std::string count = all.empty() ? "cpu; LibTorch sees no accelerator here" : "cpu, and what follows";
  all.insert(all.begin(), {State::fact, "devices", count, ""});
  return all;
}

// On a version that nobody has tried.
Finding verdict(const std::vector<Finding>& findings) {
  const std::string version = "LibTorch " + running_libtorch();
  if (exit_code(findings) == exit_done) {
    return {State::good, "verdict", version + " was not tried before, and what was tried here works", ""};
  }
  return {State::bad, "verdict", version + " was not tried before, and does not work",
          "use one of the versions in docs/versions.md"};
}

}  // namespace

int examine_libtorch(const DoctorOptions& options) {
  std::vector<Finding> findings = {libtorch()};
  if (runs_as_compiled()) findings.push_back(allocator());
  findings.push_back(session());
  if (runs_as_compiled()) {
    for (Finding& finding : devices()) findings.push_back(std::move(finding));
  }
  if (!tried && runs_as_compiled()) findings.push_back(verdict(findings));
  print_out(to_text(findings, options));
  return exit_code(findings);
}

}  // namespace reprise::tools
