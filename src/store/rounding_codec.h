// A codec that rounds real numbers (rounding_kernels.h): what those have in common that differ only in how.
#pragma once

#include "reprise/store/codec.h"
#include "store/rounding_kernels.h"

namespace reprise::internal {

class RoundingCodec : public Codec {
 public:
  struct Way {
    std::string_view name, summary;
    std::size_t (*coded_bytes)(Element, std::size_t n);
    bool (*RoundingKernels::*encode)(const std::byte* data, std::size_t n, std::byte* out);
    void (*RoundingKernels::*decode)(const std::byte* coded, std::size_t n, std::byte* out);
  };
  explicit RoundingCodec(const Way& way) : way_(way) {}

  std::string_view name() const override { return way_.name; }
  std::string_view summary() const override { return way_.summary; }
  bool exact() const override { return false; }

  std::optional<std::size_t> room(const ArrayView&) const override;
  std::optional<std::size_t> encode(const ArrayView&, std::span<std::byte> room) const override;
  void check_size(std::span<const std::byte> coded, Element, std::size_t bytes) const override;
  void decode(std::span<const std::byte> coded, Element, std::span<std::byte> out) const override;

 private:
  const Way way_;
};

}  // namespace reprise::internal
