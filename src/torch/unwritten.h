// Unwritten bytes: what an operator leaves of its result as it found it in fresh memory.
//
// Some kernels fill only a part of what they return, because nobody reads the rest: CTC beyond the length of each
// sequence, the workspace of a recurrent layer. A replay finds other bytes there, and gradients are the same. So values
// with such bytes are not compared. Those of LibTorch are in a table, unwritten.inc, which scripts/unwritten.py writes
// after a sweep over all operators. Those of others are found when a rebuilt value differs: bytes that are what fresh
// memory was filled with were written by nobody.
//
// That is not the same as computing with what is found in memory, which a few kernels do (linalg_lstsq: the order of
// pivots). Their results cannot be replayed.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::internal {

class Recording;
struct View;

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

// Whether these blocks of a view's fingerprint have bytes that nobody wrote, and no other reason to differ is seen. The
// value is rebuilt three times, one after the other, on memory that is filled. It has to be the same when memory is
// filled in the same way; filled in another way, each of these blocks has to differ, and only by what it is filled
// with. False if nothing at all was written, as that is memory for the program to fill; and if there is no room to find
// out. Not under the arbiter.
[[nodiscard]] bool nobody_wrote(Recording&, Id value, const View&, std::span<const std::size_t> blocks);

}  // namespace reprise::internal
