// Fingerprints of values: one number for each 64 KiB of the elements that a view reaches, never of what lies between.
#pragma once

#include <cstdint>
#include <vector>

#include "torch/saved.h"

namespace reprise {

inline constexpr std::size_t fingerprint_block = 64 << 10;

[[nodiscard]] std::vector<std::uint64_t> fingerprint(const c10::Storage&, const View&);

}  // namespace reprise
