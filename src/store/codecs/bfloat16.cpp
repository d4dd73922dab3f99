#include "store/rounding_codec.h"

namespace reprise::internal {

const Codec& bfloat16_codec() {
  static const RoundingCodec codec({
      .name = "bfloat16",
      .summary = "8 significant bits, the range of float: |error| <= 2^-8 |x|, or 2^-134 below 2^-126",
      .coded_bytes = [](Element, std::size_t n) { return 2 * n; },
      .encode = &RoundingKernels::to_bfloat16,
      .decode = &RoundingKernels::from_bfloat16,
  });
  return codec;
}

}  // namespace reprise::internal
