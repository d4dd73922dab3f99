// A trace in a file, for commands that read one.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reprise/trace/files.h"
#include "reprise_process.h"
#include "support/random_trace.h"
#include "support/temporary_folder.h"

namespace reprise::testing {

class StepFile : public ::testing::Test {
 protected:
  explicit StepFile(Trace trace = random_training_step(8, 20)) : trace_(std::move(trace)) {
    write_trace(file_, trace_);
  }

  // reprise COMMAND FILE ARGUMENT...
  [[nodiscard]] Outcome run_on_it(const char* command, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {command, file_});
    return run_command(arguments);
  }
  // Of another file beside it.
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const Trace trace_;
  const TemporaryFolder folder_;
  const std::string file_ = path("step.json");
};

}  // namespace reprise::testing
