// What ./bench live was asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/torch/session.h"

namespace reprise::benchmarks {

struct Settings {
  std::string model = "gpt";
  // A share of the plain peak ("0.5x") or bytes ("180MB"), both counted above the level: what is live at the start of a
  // step is not in it.
  std::string budget = "0.5x";
  std::string optimizer = "none";
  std::int64_t region = 0;  // blocks in a region of the rival; 0: no rival
  int threads = 1;
  // Numbers too small for a normal float are computed as they are. They are a hundred times slower than others on some
  // processors: in backward of `lstm` they would be nine tenths of the time and hide everything else.
  bool denormals = false;
  int repetitions = 40;  // at most
  int steps = 0;         // one after the other in what is timed as one; 0: as many as take a tenth of a second
  SessionOptions session;

  bool smallest = false;
  bool json = false;

  // Of one side only: plain, record or reprise; empty: the whole measurement.
  std::string only;
  int only_steps = 0;
  bool resident = false;  // with `only`: print by how much the process has grown in its steps
};

// The arguments of this program again, for a child that runs Reprise steps alone within `budget` bytes above the level.
[[nodiscard]] std::vector<std::string> arguments_of_child(const Settings&, Bytes budget);

// The settings from the command line. Not `run`: the program ends with `status` (help, or a mistake).
struct Parsed {
  Settings settings;
  bool run = false;
  int status = 0;
};
[[nodiscard]] Parsed parse_settings(int argc, char** argv);

}  // namespace reprise::benchmarks
