#include <algorithm>

#include "reprise/store/codec.h"
#include "store/coded_bytes.h"

namespace reprise::internal {
namespace {

class ExactCodec : public Codec {
 public:
  std::string_view name() const override { return "exact"; }
  std::string_view summary() const override { return "a copy"; }
  bool exact() const override { return true; }

  std::optional<std::size_t> room(const ArrayView& array) const override { return array.bytes(); }

  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    if (room.size() < array.bytes()) return std::nullopt;
    std::ranges::copy(array.data(), room.begin());
    return array.bytes();
  }

  void check_size(std::span<const std::byte> coded, Element element, std::size_t bytes) const override {
    require_coded_bytes(*this, coded, element, bytes, bytes);
  }

  void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const override {
    check_size(coded, element, out.size());
    std::ranges::copy(coded, out.begin());
  }
};

}  // namespace

const Codec& exact_codec() {
  static const ExactCodec codec;
  return codec;
}

}  // namespace reprise::internal
