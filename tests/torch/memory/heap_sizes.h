// Sizes that the tests of the heap and of its arena speak of.
#pragma once

#include <cstddef>

#include "reprise/trace/trace.h"

namespace reprise::internal::heap {

inline constexpr std::size_t KiB = 1 << 10, MiB = 1 << 20;
inline constexpr Bytes plenty = Bytes{1} << 40;

}  // namespace reprise::internal::heap
