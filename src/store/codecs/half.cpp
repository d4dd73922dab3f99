#include "reprise/store/codec.h"
#include "store/coded_bytes.h"
#include "store/rounding_kernels.h"

namespace reprise::internal {
namespace {

class HalfCodec : public Codec {
 public:
  std::string_view name() const override { return "half"; }
  std::string_view summary() const override {
    return "11 significant bits, up to 65504: |error| <= 2^-11 |x|, or 2^-25 below 2^-14";
  }
  bool exact() const override { return false; }

  std::optional<std::size_t> room(const ArrayView& array) const override {
    if (!rounding(array.element())) return std::nullopt;
    return 2 * array.elements();
  }

  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    const RoundingKernels* const kernels = rounding(array.element());
    const std::size_t n = array.elements();
    if (!kernels || room.size() < 2 * n || !kernels->to_half(array.data().data(), n, room.data())) return std::nullopt;
    return 2 * n;
  }

  void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const override {
    const RoundingKernels* const kernels = rounding(element);
    if (!kernels) refuse_coded_bytes(*this, coded, element, out, "it codes real numbers only");
    const std::size_t n = decoded_elements(*this, element, out);
    require_coded_bytes(*this, coded, element, out, 2 * n);
    kernels->from_half(coded.data(), n, out.data());
  }
};

}  // namespace

const Codec& half_codec() {
  static const HalfCodec codec;
  return codec;
}

}  // namespace reprise::internal
