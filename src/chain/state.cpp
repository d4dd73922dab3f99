#include "reprise/chain/state.h"

#include <fmt/format.h>

namespace reprise::internal {

void fail_decoded_bytes(std::size_t bytes, std::size_t expected) {
  throw Error(fmt::format("[chain] an array of {} bytes is no state of {} bytes", bytes, expected));
}

}  // namespace reprise::internal
