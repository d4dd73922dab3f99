// Coded bytes that a file says a codec has made, and the same bytes as an array that codecs are to code.
//
// An input: the codec's number | the element | elements, in 4 bytes | what is coded
#include <algorithm>
#include <vector>

#include "fuzz.h"
#include "reprise/store/codec.h"
#include "reprise/trace/error.h"

namespace reprise {
namespace {

void decode(const Codec& codec, Element element, std::size_t elements, std::span<const std::byte> coded) {
  try {
    const std::size_t bytes = elements * bytes_of(element);
    codec.check_size(coded, element, bytes);
    std::vector<std::byte> out(bytes);
    codec.decode(coded, element, out);
  } catch (const Error&) {
  }
}

void code_and_decode(const Codec& codec, Element element, std::span<const std::byte> plain) {
  const std::size_t elements = plain.size() / bytes_of(element);
  const ArrayView array(element, {static_cast<std::int64_t>(elements)}, plain.first(elements * bytes_of(element)));
  const auto room = codec.room(array);
  if (!room) return;
  std::vector<std::byte> coded(*room);
  const auto size = codec.encode(array, coded);
  if (!size) return;
  fuzz::require(*size <= *room, "a codec keeps to the room that it asked for");
  coded.resize(*size);
  std::vector<std::byte> out(array.bytes());
  codec.check_size(coded, element, out.size());
  codec.decode(coded, element, out);
  fuzz::require(!codec.exact() || std::ranges::equal(out, array.data()), "an exact codec gives back every bit");
}

}  // namespace
}  // namespace reprise

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise;
  fuzz::Bytes input(data, size);
  const Codec& codec = *codecs()[input.number<std::uint8_t>() % codecs().size()];
  const auto element = static_cast<Element>(input.number<std::uint8_t>() % (static_cast<int>(Element::complex128) + 1));
  const auto elements = input.number<std::uint32_t>();
  const auto rest = input.rest();
  decode(codec, element, elements, rest);
  // Aligned as arrays are; what is read as booleans is 0 or 1.
  std::vector<std::byte> plain(rest.begin(), rest.end());
  if (element == Element::boolean) {
    for (std::byte& each : plain) each &= std::byte{1};
  }
  code_and_decode(codec, element, plain);
  return 0;
}
