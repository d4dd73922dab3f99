// Against whom: what people use to save memory, by model.
#pragma once

#include <string>
#include <vector>

namespace reprise::benchmarks {

enum class Engine { cpp, python };
[[nodiscard]] std::string name(Engine);

struct Rival {
  Engine engine = Engine::cpp;
  std::string way;    // "first 4": in words that compare_peers.py lists; C++ knows every, first and levels
  std::string label;  // for tables
  std::string mark;   // for pictures: short
};

// Throws BadOption for a model there is nothing to compare with. `quick`: one of each kind.
[[nodiscard]] std::vector<Rival> rivals_of(const std::string& model, bool quick);

// The models, in the order of the document, and how it calls them.
struct ComparedModel {
  std::string name, title;
};
[[nodiscard]] const std::vector<ComparedModel>& compared_models();

}  // namespace reprise::benchmarks
