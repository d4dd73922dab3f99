#include <algorithm>

#include "reprise/store/codec.h"
#include "reprise/store/packing.h"
#include "store/coded_bytes.h"

namespace reprise::internal {
namespace {

constexpr std::size_t largest_element = 8;  // bytes that `pack` takes

PackedForm form_of(Element element, std::size_t elements) {
  return {PackedAs::bits, static_cast<int>(bytes_of(element)), elements};
}

// What is coded is what `pack` makes; the form follows from the array that it was.
class BitsCodec : public Codec {
 public:
  std::string_view name() const override { return "bits"; }
  std::string_view summary() const override { return "a bit for each element of arrays with at most two patterns"; }
  bool exact() const override { return true; }

  // A look at the start refuses nearly everything that is not a mask; the rest is left to `encode`, so that a mask is
  // not read twice.
  std::optional<std::size_t> room(const ArrayView& array) const override {
    const PackedForm form = form_of(array.element(), array.elements());
    const std::size_t looked_at = std::min<std::size_t>(array.elements(), 1024) * bytes_of(array.element());
    const auto start = packable(array.data().first(looked_at), form.element_bytes, false);
    if (!start || form.bytes() >= array.bytes()) return std::nullopt;
    return form.bytes();
  }

  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    const PackedForm form = form_of(array.element(), array.elements());
    if (!pack(form, array.data(), room)) return std::nullopt;
    return form.bytes();
  }

  void check_size(std::span<const std::byte> coded, Element element, std::size_t bytes) const override {
    if (bytes_of(element) > largest_element) {
      refuse_coded_bytes(*this, coded, element, bytes, "such elements are too large to be packed");
    }
    require_coded_bytes(*this, coded, element, bytes,
                        form_of(element, decoded_elements(*this, element, bytes)).bytes());
  }

  void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const override {
    check_size(coded, element, out.size());
    unpack(form_of(element, decoded_elements(*this, element, out.size())), coded, out);
  }
};

}  // namespace

const Codec& bits_codec() {
  static const BitsCodec codec;
  return codec;
}

}  // namespace reprise::internal
