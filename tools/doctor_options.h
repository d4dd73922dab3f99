// The options of `reprise doctor`, which is one command in two programs: what can be said without LibTorch, then the
// rest. What both find out is printed in the same form.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "command.h"

namespace reprise::tools {

struct DoctorOptions {
  bool json = false;
};

void add_doctor_command(CLI::App& app, const std::shared_ptr<DoctorOptions>& options, const std::function<void()>& use);

// One thing that was looked at.
struct Finding {
  enum class State { fact, good, poor, bad } state = State::fact;  // poor: works, but less well; bad: does not work
  std::string what;                                                // "LibTorch"
  std::string answer;                                              // "2.13.0, 2 threads"
  std::string advice;                                              // what to do about it, if anything
};

// For people a line each; with --json one object on one line each: {"what", "state", "answer", "advice"}.
[[nodiscard]] std::string to_text(const std::vector<Finding>&, const DoctorOptions&);

// exit_refused if anything is bad.
[[nodiscard]] int exit_code(const std::vector<Finding>&);

}  // namespace reprise::tools
