#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>

#include "reprise/trace/files.h"
#include "torch/fake_run.h"
#include "torch/measure_in_copy.h"
#include "torch/session_state.h"
#include "torch/thread_state.h"

namespace reprise {
using namespace internal;
namespace {

constexpr const char* measuring = "[measure] ";

// ---- in the copy of the process ------------------------------------------------------------------------------------

// What the copy tells: a line that says how it went, then the trace, or what went wrong.
std::string measured_here(const std::function<void()>& train) try {
  Session session({.pack = false, .planning_time = std::chrono::milliseconds(0), .name = "measure"});
  begin_fake_run();
  {
    const auto step = session.step();
    train();
  }
  const auto trace = session.trace();
  if (!trace) return "failed\nthe function ran no backward";
  const Summary summary = session.summary();
  return "measured " + std::to_string(summary.peak_last_step) + " " + std::to_string(summary.step_seconds) + "\n" +
         to_json(*trace);
} catch (const std::exception& error) {
  return std::string("failed\n") + error.what();
} catch (...) {
  return "failed\nthe function threw something that is no std::exception";
}

[[noreturn]] void run_copy(int to, const std::function<void()>& train) {
  const std::string told = measured_here(train);
  for (std::size_t done = 0; done < told.size();) {
    const ssize_t written = write(to, told.data() + done, told.size() - done);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  std::cout.flush();
  std::fflush(nullptr);
  _exit(0);
}

// ---- in the process itself -----------------------------------------------------------------------------------------

std::string read_all(int from) {
  std::string text;
  std::array<char, 1 << 16> part{};
  while (true) {
    const ssize_t count = read(from, part.data(), part.size());
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
    if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
  }
}

std::string how_it_ended(pid_t copy) {
  int status = 0;
  while (waitpid(copy, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    return "the function ended with signal " + std::to_string(WTERMSIG(status)) +
           ": something in it relies on what is in a tensor, and tensors have no contents here";
  }
  return "the function ended the process";
}

Measurement understood(const std::string& told) {
  const std::size_t line = told.find('\n');
  const std::string rest = told.substr(line + 1);
  if (told.starts_with("failed")) throw MeasurementError(measuring + rest);
  Measurement measured;
  if (std::sscanf(told.c_str(), "measured %ld %lf", &measured.peak, &measured.seconds) != 2) {
    throw MeasurementError(std::string(measuring) + "the copy of the process did not finish what it had to tell");
  }
  measured.trace = parse_trace(rest);
  return measured;
}

}  // namespace

Measurement internal::measure_in_copy(const std::function<void()>& train, const std::function<pid_t()>& make_copy) {
  if (this_thread().step) throw BadOption(std::string(measuring) + "this thread has an open step; close it first");
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw MeasurementError(std::string(measuring) + std::strerror(errno));
  std::cout.flush();
  std::fflush(nullptr);  // what is still to be written is written once
  const pid_t copy = make_copy();
  if (copy == 0) {
    close(ends[0]);
    run_copy(ends[1], train);
  }
  const int problem = errno;
  close(ends[1]);
  if (copy < 0) {
    close(ends[0]);
    throw MeasurementError(std::string(measuring) + "the process cannot be copied: " + std::strerror(problem));
  }
  const std::string told = read_all(ends[0]);
  close(ends[0]);
  const std::string ended = how_it_ended(copy);
  if (told.find('\n') == std::string::npos) throw MeasurementError(measuring + ended);
  return understood(told);
}

Measurement Session::measure(const std::function<void()>& train) const {
  if (const Place& place = state_->rules().place(); !place.is_cpu()) {
    throw BadOption(std::string(measuring) + "a step on " + place.name() +
                    " cannot be run without its memory, only one on the CPU");
  }
  return measure_in_copy(train, &fork);
}

}  // namespace reprise
