// Unwritten bytes: what an operator leaves of its result as it found it in fresh memory.
//
// Some kernels fill only a part of what they return, because nobody reads the rest: CTC beyond the length of each
// sequence, the workspace of a recurrent layer. A replay finds other bytes there, and gradients are the same. So values
// with such bytes are not compared. Those of LibTorch are in a table, unwritten.inc, which executables/unwritten.py
// writes after a sweep over all operators. Those of others are found when a recomputed value differs
// (unwritten_bytes.h).
//
// That is not the same as computing with what is found in memory, which a few kernels do (linalg_lstsq: the order of
// pivots). Their results cannot be replayed.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace reprise::internal {

// A row of the table, for one overload.
struct Unwritten {
  std::string_view name;
  std::vector<int> results;    // those with unwritten elements
  std::vector<int> arguments;  // given as memory for results, and partly left as they were
  bool computed = false;       // with what was found in memory
};

// nullptr: it is not in the table.
[[nodiscard]] const Unwritten* find_unwritten(std::string_view name);
[[nodiscard]] std::span<const Unwritten> unwritten_table();

}  // namespace reprise::internal
