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

void RoundingCodec::decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const {
  const RoundingKernels* const kernels = rounding(element);
  if (!kernels) refuse_coded_bytes(*this, coded, element, out, "it codes real numbers only");
  const std::size_t n = decoded_elements(*this, element, out);
  require_coded_bytes(*this, coded, element, out, way_.coded_bytes(element, n));
  (kernels->*way_.decode)(coded.data(), n, out.data());
}

}  // namespace reprise::internal
