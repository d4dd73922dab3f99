// What ./bench compare is asked for, against whom, and what it measures.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "training_figures.h"

namespace reprise::benchmarks {

using Json = nlohmann::ordered_json;

struct CompareSettings {
  std::vector<std::string> models;  // all, if none is named
  int repetitions = 7;
  std::string python;            // empty: see PythonPeers
  std::filesystem::path output;  // the page
  std::filesystem::path from;    // empty: measure
  bool quick = false;
  std::chrono::milliseconds planning_time = std::chrono::seconds(5);
};

// The command: `argv[0]` is its name. Returns the exit code; what it throws is a mistake in the set-up.
int compare(int argc, char** argv);

// What people use to save memory.
struct Rival {
  bool python = false;
  std::string way;    // "first 4": in words that compare_peers.py lists; C++ knows every, first and levels
  std::string label;  // for tables
  std::string mark;   // for pictures: short
};

// A model and its rivals, from compare_rivals.json, in the order of the page.
struct ComparedModel {
  std::string name;
  std::string title;  // how the page calls it
  std::vector<Rival> rivals;
};

class PythonPeers;

// All sides of a model in turn, again and again, in the form that scripts/benchmarks_page.py reads. `python`: nullptr
// if there is none; its rivals are then named as not measured.
[[nodiscard]] Json compare_sides(const ComparedModel&, const CompareSettings&, PythonPeers* python);

}  // namespace reprise::benchmarks
