// Uninitialized bytes of a value that was replayed and differs. Bytes that show what fresh memory was filled with were
// never written, and gradients do not depend on them (recipes/uninitialized.h).
#pragma once

#include <cstddef>
#include <span>

#include "torch/values/recording.h"

namespace reprise::internal {

// Returns whether these blocks of a view's fingerprint have uninitialized bytes, and no other reason to differ is seen.
// The value is recomputed three times, one after the other, on memory that is filled. It has to be the same when memory
// is filled in the same way; filled in another way, each of these blocks has to differ, and only by what it is filled
// with. False if the operator wrote nothing at all, because then the program fills that memory; false if there is no
// room to find out. Not under the arbiter.
[[nodiscard]] bool differs_only_in_uninitialized(Recording&, Id value, const View&,
                                                 std::span<const std::size_t> blocks);

}  // namespace reprise::internal
