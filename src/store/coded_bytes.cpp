#include "store/coded_bytes.h"

#include <fmt/format.h>

#include "reprise/trace/error.h"

namespace reprise::internal {

std::size_t decoded_elements(const Codec& codec, Element element, std::size_t bytes) {
  if (bytes % bytes_of(element) != 0) {
    throw Error(
        fmt::format("[store] {}: {} bytes are no whole number of {} elements", codec.name(), bytes, name(element)));
  }
  return bytes / bytes_of(element);
}

void require_coded_bytes(const Codec& codec, std::span<const std::byte> coded, Element element, std::size_t bytes,
                         std::size_t expected) {
  if (coded.size() == expected) return;
  refuse_coded_bytes(codec, coded, element, bytes, fmt::format("they would be {}", expected));
}

void refuse_coded_bytes(const Codec& codec, std::span<const std::byte> coded, Element element, std::size_t bytes,
                        std::string_view reason) {
  throw Error(fmt::format("[store] {}: {} coded bytes are not what {} bytes of {} become: {}", codec.name(),
                          coded.size(), bytes, name(element), reason));
}

}  // namespace reprise::internal
