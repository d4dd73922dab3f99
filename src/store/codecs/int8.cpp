#include "reprise/store/codec.h"
#include "store/coded_bytes.h"
#include "store/rounding_kernels.h"

namespace reprise::internal {
namespace {

class Int8Codec : public Codec {
 public:
  std::string_view name() const override { return "int8"; }
  std::string_view summary() const override {
    return "a byte for each real number: |error| <= m / 253 + half a subnormal, m the largest |x| in a block of 64";
  }
  bool exact() const override { return false; }

  std::optional<std::size_t> room(const ArrayView& array) const override {
    if (!rounding(array.element())) return std::nullopt;
    const std::size_t coded = int8_bytes(array.element(), array.elements());
    if (coded > array.bytes()) return std::nullopt;  // a single number
    return coded;
  }

  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    const RoundingKernels* const kernels = rounding(array.element());
    const std::size_t n = array.elements(), coded = int8_bytes(array.element(), n);
    if (!kernels || room.size() < coded || !kernels->to_int8(array.data().data(), n, room.data())) return std::nullopt;
    return coded;
  }

  void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const override {
    const RoundingKernels* const kernels = rounding(element);
    if (!kernels) refuse_coded_bytes(*this, coded, element, out, "it codes real numbers only");
    const std::size_t n = decoded_elements(*this, element, out);
    require_coded_bytes(*this, coded, element, out, int8_bytes(element, n));
    kernels->from_int8(coded.data(), n, out.data());
  }
};

}  // namespace

const Codec& int8_codec() {
  static const Int8Codec codec;
  return codec;
}

}  // namespace reprise::internal
