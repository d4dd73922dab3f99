#include "torch/api/copy_of_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "reprise/torch/measurement.h"

namespace reprise::internal {
namespace {

// What the copy writes: one of these, its report, and the last one. Without that it ended before its time.
constexpr char succeeded = 's', failed = 'f', complete = '.';

// ---- in the copy ---------------------------------------------------------------------------------------------------

std::string report_of(const std::function<std::string()>& make_report) try {
  return succeeded + make_report();
} catch (const std::exception& error) {
  return failed + std::string(error.what());
} catch (...) {
  return failed + std::string("the function threw something that is no std::exception");
}

[[noreturn]] void run_copy(int to, const std::function<std::string()>& make_report) {
  const std::string report = report_of(make_report) + complete;
  for (std::size_t done = 0; done < report.size();) {
    const ssize_t written = write(to, report.data() + done, report.size() - done);
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

}  // namespace

std::string report_of_copy(const char* doing, const std::function<std::string()>& make_report,
                           const MakeCopy& make_copy) {
  const auto fail = [&](const std::string& why) { throw MeasurementError(doing + why); };
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) fail(std::strerror(errno));
  std::cout.flush();
  std::fflush(nullptr);  // what is still to be written is written once
  const pid_t copy = make_copy();
  if (copy == 0) {
    close(ends[0]);
    run_copy(ends[1], make_report);
  }
  const int problem = errno;
  close(ends[1]);
  if (copy < 0) {
    close(ends[0]);
    fail(std::string("the process cannot be copied: ") + std::strerror(problem));
  }
  std::string report = read_all(ends[0]);
  close(ends[0]);
  const std::string ended = how_it_ended(copy);
  if (report.size() < 2 || report.back() != complete) fail(ended);
  report.pop_back();
  const char how = report.front();
  report.erase(0, 1);
  if (how == failed) fail(report);
  return report;
}

}  // namespace reprise::internal
