// The `reprise` command, run as a user runs it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace reprise::testing {

struct Outcome {
  int code = 0;  // the exit code, or 128 + the signal that ended it
  std::string out, err;
};

// Runs a program and waits for it, with these environment variables ("NAME=value") before all others. With
// `interrupt_after` seconds it gets a Ctrl-C then.
[[nodiscard]] Outcome run_program(std::vector<std::string> words, const std::vector<std::string>& variables = {},
                                  double interrupt_after = 0);

// Starts a program and kills it, as no program can prevent, as soon as the file is there.
void kill_when_there(std::vector<std::string> words, const std::filesystem::path& file);

// The command that was built.
[[nodiscard]] Outcome run_command(const std::vector<std::string>& arguments, double interrupt_after = 0);

// Whether the text is exactly one line.
[[nodiscard]] bool one_line(const std::string& text);

}  // namespace reprise::testing
