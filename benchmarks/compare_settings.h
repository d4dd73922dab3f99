// What ./bench compare was asked for.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace reprise::benchmarks {

struct CompareSettings {
  std::vector<std::string> models;  // all, if none is named
  int repetitions = 7;
  std::string python;  // empty: see PythonPeers
  std::filesystem::path output = "docs/benchmarks.md";
  std::filesystem::path keep, from;  // empty: none
  bool quick = false;
  std::chrono::milliseconds planning_time = std::chrono::seconds(5);

  // The options that say what is measured, to be typed again.
  [[nodiscard]] std::string options() const;
};

// The settings from the command line. Not `run`: the program ends with `status` (help, or a mistake).
struct CompareParsed {
  CompareSettings settings;
  bool run = false;
  int status = 0;
};
[[nodiscard]] CompareParsed parse_compare_settings(int argc, char** argv);

}  // namespace reprise::benchmarks
