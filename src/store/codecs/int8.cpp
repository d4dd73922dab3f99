#include "store/rounding_codec.h"

namespace reprise::internal {

const Codec& int8_codec() {
  static const RoundingCodec codec({
      .name = "int8",
      .summary =
          "a byte for each real number: |error| <= m / 253 + half a subnormal, m the largest |x| in a block of 64",
      .coded_bytes = int8_bytes,
      .encode = &RoundingKernels::to_int8,
      .decode = &RoundingKernels::from_int8,
  });
  return codec;
}

}  // namespace reprise::internal
