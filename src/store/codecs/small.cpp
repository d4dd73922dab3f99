#include "reprise/store/codec.h"
#include "reprise/store/packing.h"
#include "store/coded_bytes.h"

namespace reprise::internal {
namespace {

constexpr PackedAs largest_first[] = {PackedAs::words, PackedAs::bytes, PackedAs::bits};

PackedForm form_of(PackedAs as, Element element, std::size_t elements) {
  return {as, static_cast<int>(bytes_of(element)), elements};
}

// What is coded: a byte, the number of the form (PackedAs), then what `pack` makes. Two values are packed as bits: a
// codec for small integers would be odd to refuse the smallest.
class SmallCodec : public Codec {
 public:
  std::string_view name() const override { return "small"; }
  std::string_view summary() const override {
    return "integers of at most 65536 values from the lowest to the highest, in one or two bytes, or in a bit";
  }
  bool exact() const override { return true; }

  std::optional<std::size_t> room(const ArrayView& array) const override {
    if (!is_integer(array.element())) return std::nullopt;
    const auto form = packable(array.data(), static_cast<int>(bytes_of(array.element())), true);
    if (!form || 1 + form->bytes() >= array.bytes()) return std::nullopt;
    return 1 + form->bytes();
  }

  // The size of the room says which form was found, which saves looking for it again. `pack` takes nothing on trust.
  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    if (!is_integer(array.element())) return std::nullopt;
    for (const PackedAs as : largest_first) {
      const PackedForm form = form_of(as, array.element(), array.elements());
      if (1 + form.bytes() > room.size()) continue;
      if (!pack(form, array.data(), room.subspan(1))) return std::nullopt;
      room[0] = static_cast<std::byte>(as);
      return 1 + form.bytes();
    }
    return std::nullopt;
  }

  void check_size(std::span<const std::byte> coded, Element element, std::size_t bytes) const override {
    static_cast<void>(checked_form(coded, element, bytes));
  }

  void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const override {
    const PackedForm form = checked_form(coded, element, out.size());  // there is a first byte
    unpack(form, coded.subspan(1), out);
  }

 private:
  [[nodiscard]] PackedForm checked_form(std::span<const std::byte> coded, Element element, std::size_t bytes) const {
    if (!is_integer(element)) refuse_coded_bytes(*this, coded, element, bytes, "they are no integers");
    const std::size_t n = decoded_elements(*this, element, bytes);
    for (const PackedAs as : largest_first) {
      const PackedForm form = form_of(as, element, n);
      if (coded.empty() || coded[0] != static_cast<std::byte>(as)) continue;
      if (form.bytes() >= bytes) break;  // nothing is packed that way
      require_coded_bytes(*this, coded, element, bytes, 1 + form.bytes());
      return form;
    }
    refuse_coded_bytes(*this, coded, element, bytes,
                       "the first byte says how they are packed, and says nothing of that");
  }
};

}  // namespace

const Codec& small_codec() {
  static const SmallCodec codec;
  return codec;
}

}  // namespace reprise::internal
