#include "libtorch/doctor.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>
#include <torch/torch.h>

#include "libtorch/trainer.h"
#include "libtorch/training_text.h"
#include "reprise/torch/session.h"
#include "reprise/trace/amount.h"
#include "torch/meter.h"

namespace reprise::tools {
using namespace internal;
namespace {

using State = Finding::State;

Finding libtorch() {
  return {State::good, "LibTorch",
          std::string(TORCH_VERSION) + ", " + at::get_cpu_capability() + ", " + std::to_string(at::get_num_threads()) +
              " threads",
          ""};
}

Finding allocator() {
  if (meter::in_charge()) return {State::good, "allocator", "Reprise's meter is LibTorch's CPU allocator", ""};
  return {State::bad, "allocator", "another library has put its own CPU allocator in front of Reprise's meter",
          "do not load that library, or use sessions without a budget"};
}

// Twelve steps of a tiny model, plainly and in six tenths of what that needs.
Finding session() try {
  const Text text(own_documentation());
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
  session_options.budget = plain_peak * 6 / 10;
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
  if (peak > session_options.budget) {
    return {State::bad, "session", "the peak passed the budget: " + bytes,
            "please report this as a defect, with the lines above"};
  }
  return {State::good, "session",
          "works: " + std::to_string(steps) + " steps of a tiny model in " + bytes + ", the same bit for bit", ""};
} catch (const std::exception& error) {
  return {State::bad, "session", std::string("does not work: ") + error.what(), ""};
}

}  // namespace

int examine_libtorch(const DoctorOptions& options) {
  const std::vector<Finding> findings = {libtorch(), allocator(), session()};
  print_out(to_text(findings, options));
  return exit_code(findings);
}

}  // namespace reprise::tools
