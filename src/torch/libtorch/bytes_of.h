// What lists take in memory.
#pragma once

#include "reprise/trace/trace.h"

namespace reprise::internal {

// Without what their elements have behind them.
template <typename... List>
[[nodiscard]] Bytes bytes_of(const List&... lists) {
  return (static_cast<Bytes>(lists.capacity() * sizeof(lists[0])) + ...);
}

}  // namespace reprise::internal
