// Short trainings of small models, plainly and inside a budget: whether Reprise and this LibTorch go together.
#pragma once

#include <string>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::tools {

struct ShortTraining {
  std::string name;        // of the model
  bool identical = false;  // parameters and buffers, bit for bit
  Bytes plain_peak = 0;
  Bytes budget = 0;
  Bytes peak = 0;  // inside the budget
  [[nodiscard]] bool exact() const { return identical && peak <= budget; }
};

// What the model of `reprise train` has nothing of: convolutions, statistics that each step updates, operators in place
// and recurrent layers. Every value that is replayed is compared with the one that was forgotten. Throws what a session
// throws.
[[nodiscard]] std::vector<ShortTraining> short_trainings();

}  // namespace reprise::tools
