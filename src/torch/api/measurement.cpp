#include <unistd.h>

#include <cstdio>
#include <string>

#include "reprise/trace/files.h"
#include "torch/api/dry_run.h"
#include "torch/api/measure_in_copy.h"
#include "torch/memory/arbiter.h"
#include "torch/session/session_state.h"
#include "torch/session/thread_state.h"

namespace reprise {
using namespace internal;
namespace {

constexpr const char* measuring = "[measure] ";

// In the copy: a line with numbers, then the trace.
std::string measured_here(const std::function<void()>& train) {
  Session session({.device = "cpu", .pack = false, .planning_time = std::chrono::milliseconds(0), .name = "measure"});
  begin_fake_run();
  {
    const auto step = session.step();
    train();
  }
  const auto trace = session.trace();
  if (!trace) throw SessionError("the function ran no backward");
  const Summary summary = session.summary();
  return std::to_string(summary.peak_last_step()) + " " + std::to_string(summary.step_seconds) + "\n" + to_json(*trace);
}

Measurement parse_measurement(const std::string& report) {
  Measurement measured;
  if (std::sscanf(report.c_str(), "%ld %lf", &measured.peak, &measured.seconds) != 2) {
    throw MeasurementError(std::string(measuring) + "the copy of the process wrote something else");
  }
  measured.trace = parse_trace(report.substr(report.find('\n') + 1));
  return measured;
}

}  // namespace

Measurement internal::measure_in_copy(const std::function<void()>& train, const MakeCopy& make_copy) {
  if (this_thread().step) throw BadOption(std::string(measuring) + "this thread has an open step; close it first");
  return parse_measurement(report_of_copy(
      measuring, [&] { return measured_here(train); }, make_copy));
}

Measurement Session::measure(const std::function<void()>& train) const {
  if (state_->look_for_device(); !state_->has_device()) {
    throw BadOption(
        std::string(measuring) +
        "the session names no device, and an accelerator is in use. Only a step on the CPU can be run without "
        "its memory: if this is one, say so by option device = \"cpu\"");
  }
  {
    const Arbiter lock;
    if (const auto device = state_->context().accelerator()) {
      throw BadOption(std::string(measuring) + "a step on " + device->str() +
                      " cannot be run without its memory, only one on the CPU");
    }
  }
  return measure_in_copy(train, &fork);
}

}  // namespace reprise
