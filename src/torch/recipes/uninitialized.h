// Uninitialized elements: what an operator leaves of its result as it was in fresh memory.
//
// Some kernels fill only a part of what they return, because no one reads the rest: CTC beyond the length of each
// sequence, the workspace of a recurrent layer. A replay finds other bytes there, and gradients are the same. So values
// with such bytes are not compared. Those of LibTorch are in a table. Those of others are found when a replayed value
// differs from its fingerprint (replay/uninitialized_bytes.h).
//
// A few kernels read uninitialized memory and compute with it (linalg_lstsq begins with pivots from there). Their
// results cannot be replayed, so they are kept.
//
// The table is kept by hand. executables/uninitialized.py checks its rows; with --search, it calls some 1150 operators
// of LibTorch and names those that are missing. Run that for a new LibTorch.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace reprise::internal {

// A row of the table, for one overload.
struct UninitializedParts {
  std::string_view name;
  std::vector<int> results;    // those with uninitialized elements
  std::vector<int> arguments;  // `out` arguments of which some elements keep their old contents
  bool reads_uninitialized = false;
};

[[nodiscard]] std::span<const UninitializedParts> uninitialized_table();
// Returns the row of an operator. Null if it has none.
[[nodiscard]] const UninitializedParts* find_uninitialized_parts(std::string_view name);

}  // namespace reprise::internal
