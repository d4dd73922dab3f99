// Fingerprints of values: one number for each 64 KiB of the elements that a view reaches, never of what lies between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "torch/libtorch/tensor_view.h"

namespace reprise::internal {

inline constexpr std::size_t fingerprint_block = 64 << 10;

using Fingerprint = std::vector<std::uint64_t>;

// Takes that of contents in this view. Of those on an accelerator: copies them to the host, and waits for that, so not
// under a lock of ours.
[[nodiscard]] Fingerprint fingerprint(const c10::Storage&, const View&);
// Takes that of these bytes, all of them.
[[nodiscard]] Fingerprint fingerprint(const void* data, std::size_t bytes);

// Returns the blocks in which two fingerprints of the same view differ.
[[nodiscard]] std::vector<std::size_t> differences(const Fingerprint&, const Fingerprint&);

}  // namespace reprise::internal
