#include "store/rounding_codec.h"

namespace reprise::internal {

const Codec& half_codec() {
  static const RoundingCodec codec({
      .name = "half",
      .summary = "11 significant bits, up to 65504: |error| <= 2^-11 |x|, or 2^-25 below 2^-14",
      .coded_bytes = [](Element, std::size_t n) { return 2 * n; },
      .encode = &RoundingKernels::to_half,
      .decode = &RoundingKernels::from_half,
  });
  return codec;
}

}  // namespace reprise::internal
