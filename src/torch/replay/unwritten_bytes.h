// Unwritten bytes of a value that was recomputed and differs: bytes that are what fresh memory was filled with were
// written by nobody, and gradients do not depend on them (unwritten.h).
#pragma once

#include <cstddef>
#include <span>

#include "torch/values/recording.h"

namespace reprise::internal {

// Whether these blocks of a view's fingerprint have bytes that nobody wrote, and no other reason to differ is seen. The
// value is recomputed three times, one after the other, on memory that is filled. It has to be the same when memory is
// filled in the same way; filled in another way, each of these blocks has to differ, and only by what it is filled
// with. False if nothing at all was written, as that is memory for the program to fill; and if there is no room to find
// out. Not under the arbiter.
[[nodiscard]] bool nobody_wrote(Recording&, Id value, const View&, std::span<const std::size_t> blocks);

}  // namespace reprise::internal
