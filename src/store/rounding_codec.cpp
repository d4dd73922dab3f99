#include "store/rounding_codec.h"

#include "store/coded_bytes.h"

namespace reprise::internal {

std::optional<std::size_t> RoundingCodec::room(const ArrayView& array) const {
  if (!rounding(array.element())) return std::nullopt;
  const std::size_t coded = way_.coded_bytes(array.element(), array.elements());
  if (coded > array.bytes()) return std::nullopt;  // as int8 does with a single number
  return coded;
}

std::optional<std::size_t> RoundingCodec::encode(const ArrayView& array, std::span<std::byte> room) const {
  const RoundingKernels* const kernels = rounding(array.element());
  const std::size_t n = array.elements(), coded = way_.coded_bytes(array.element(), n);
  if (!kernels || room.size() < coded) return std::nullopt;
  if (!(kernels->*way_.encode)(array.data().data(), n, room.data())) return std::nullopt;
  return coded;
}

void RoundingCodec::check_size(std::span<const std::byte> coded, Element element, std::size_t bytes) const {
  if (!rounding(element)) refuse_coded_bytes(*this, coded, element, bytes, "it codes real numbers only");
  require_coded_bytes(*this, coded, element, bytes, way_.coded_bytes(element, decoded_elements(*this, element, bytes)));
}

void RoundingCodec::decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const {
  check_size(coded, element, out.size());
  (rounding(element)->*way_.decode)(coded.data(), decoded_elements(*this, element, out.size()), out.data());
}

}  // namespace reprise::internal
