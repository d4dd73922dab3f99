// CUDA as a counted device. LibTorch asks CUDA's caching allocator by a variable of its own, and that is a class of its
// own: this is the one file that knows it. Nothing of CUDA's is linked: whoever trains on it has LibTorch's libraries
// for it loaded.
#pragma once

#include "torch/memory/counted_allocator.h"

namespace reprise::internal {

// Installs one that delegates to the present allocator, for the rest of the process. While steps are open, convolutions
// are deterministic and cuDNN tries none out: other algorithms give other bits, and need other memory. Throws BadOption
// if that cannot be: it says whether this Reprise, this program or this machine has no CUDA.
[[nodiscard]] CountedAllocator& install_on_cuda();

}  // namespace reprise::internal
