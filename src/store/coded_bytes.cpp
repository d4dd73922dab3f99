#include "store/coded_bytes.h"

#include <fmt/format.h>

#include "reprise/trace/error.h"

namespace reprise::internal {

std::size_t decoded_elements(const Codec& codec, Element element, std::span<const std::byte> out) {
  if (out.size() % bytes_of(element) != 0) {
    throw Error(fmt::format("[store] {}: {} bytes are no whole number of {} elements", codec.name(), out.size(),
                            name(element)));
  }
  return out.size() / bytes_of(element);
}

void require_coded_bytes(const Codec& codec, std::span<const std::byte> coded, Element element,
                         std::span<const std::byte> out, std::size_t expected) {
  if (coded.size() == expected) return;
  refuse_coded_bytes(codec, coded, element, out, fmt::format("they would be {}", expected));
}

void refuse_coded_bytes(const Codec& codec, std::span<const std::byte> coded, Element element,
                        std::span<const std::byte> out, std::string_view reason) {
  throw Error(fmt::format("[store] {}: {} coded bytes are not what {} bytes of {} become: {}", codec.name(),
                          coded.size(), out.size(), name(element), reason));
}

}  // namespace reprise::internal
