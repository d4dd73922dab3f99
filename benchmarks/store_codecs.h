// How fast codecs are beside memcpy of the same bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace reprise::benchmarks {

struct CodecSettings {
  std::size_t mebibytes = 64;  // of an array that is not coded
  int repetitions = 9;
  std::string codec;  // only this one; empty: all
};

struct CodecSpeed {
  std::string codec, array;
  std::size_t plain_bytes = 0, coded_bytes = 0, room_bytes = 0;
  // CPU seconds, medians. Encoding is what a store does for it: asking for the room, and coding.
  double copy = 0, encode = 0, decode = 0;
  // Of the array's bytes in a second, as a share of what memcpy does.
  [[nodiscard]] double encode_speed() const { return copy / encode; }
  [[nodiscard]] double decode_speed() const { return copy / decode; }
};

// One thread; copying, encoding and decoding in turn, from and to memory that was used before.
[[nodiscard]] std::vector<CodecSpeed> measure_codecs(const CodecSettings&);

}  // namespace reprise::benchmarks
