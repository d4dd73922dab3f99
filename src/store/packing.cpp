#include "reprise/store/packing.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "store/packing_kernels.h"
#include "store/packing_loops.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t header_bytes = 16, looked_at_first = 64;

struct PackedHeader {
  std::uint64_t first = 0;   // bits: the pattern of a 0; otherwise the base
  std::uint64_t second = 0;  // bits: the pattern of a 1
};
static_assert(sizeof(PackedHeader) == header_bytes);

bool is_size(int element_bytes) {
  return element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
}

bool makes_sense(const PackedForm& form) {
  if (!is_size(form.element_bytes)) return false;
  switch (form.as) {
    case PackedAs::bits: return true;
    case PackedAs::bytes: return form.element_bytes > 1;
    case PackedAs::words: return form.element_bytes > 2;
  }
  return false;
}

const PackingKernels& kernels_for(int element_bytes) {
  const PackingKernels* fast = avx2_packing(element_bytes);
  return fast ? *fast : portable_packing(element_bytes);
}

std::uint64_t element_at(std::span<const std::byte> data, int element_bytes, std::size_t i) {
  switch (element_bytes) {
    case 1: return packing_loops::load<std::uint8_t>(data.data(), i);
    case 2: return packing_loops::load<std::uint16_t>(data.data(), i);
    case 4: return packing_loops::load<std::uint32_t>(data.data(), i);
    default: return packing_loops::load<std::uint64_t>(data.data(), i);
  }
}

// Returns the patterns of the first element, and the first one that is different, if there is one.
PackedHeader first_two_patterns(const PackingKernels& kernels, std::span<const std::byte> data, int element_bytes,
                                std::size_t elements) {
  PackedHeader patterns;
  if (elements == 0) return patterns;
  patterns.first = patterns.second = element_at(data, element_bytes, 0);
  const std::size_t other = kernels.first_other(data.data(), elements, patterns.first);
  if (other < elements) patterns.second = element_at(data, element_bytes, other);
  return patterns;
}

// Most arrays are not masks: a look at the start costs less than setting up the loops.
bool starts_two_valued(std::span<const std::byte> data, int element_bytes, std::size_t elements) {
  const std::uint64_t first = element_at(data, element_bytes, 0);
  std::uint64_t second = first;
  for (std::size_t i = 1; i < std::min(elements, looked_at_first); ++i) {
    const std::uint64_t element = element_at(data, element_bytes, i);
    if (element == first || element == second) continue;
    if (second != first) return false;
    second = element;
  }
  return true;
}

bool is_two_valued(const PackingKernels& kernels, std::span<const std::byte> data, int element_bytes,
                   std::size_t elements) {
  if (!starts_two_valued(data, element_bytes, elements)) return false;
  const PackedHeader patterns = first_two_patterns(kernels, data, element_bytes, elements);
  return kernels.two_valued(data.data(), elements, patterns.first, patterns.second);
}

}  // namespace

const char* name(PackedAs as) {
  switch (as) {
    case PackedAs::bits: return "bits";
    case PackedAs::bytes: return "bytes";
    case PackedAs::words: return "words";
  }
  return "?";
}

std::size_t PackedForm::bytes() const {
  switch (as) {
    case PackedAs::bits: return header_bytes + (elements + 7) / 8;
    case PackedAs::bytes: return header_bytes + elements;
    case PackedAs::words: return header_bytes + 2 * elements;
  }
  return 0;
}

std::size_t PackedForm::plain_bytes() const {
  return elements * static_cast<std::size_t>(element_bytes);
}

std::optional<PackedForm> packable(std::span<const std::byte> data, int element_bytes, bool integers) {
  if (!is_size(element_bytes) || data.size() % static_cast<std::size_t>(element_bytes) != 0) return std::nullopt;
  PackedForm form{PackedAs::bits, element_bytes, data.size() / static_cast<std::size_t>(element_bytes)};
  if (form.bytes() >= data.size()) return std::nullopt;
  const PackingKernels& kernels = kernels_for(element_bytes);
  if (is_two_valued(kernels, data, element_bytes, form.elements)) return form;

  std::int64_t low = 0, high = 0;
  if (!integers || !kernels.range || !kernels.range(data.data(), form.elements, low, high)) return std::nullopt;
  form.as = high - low < 256 ? PackedAs::bytes : PackedAs::words;
  if (!makes_sense(form) || form.bytes() >= data.size()) return std::nullopt;
  return form;
}

bool pack(const PackedForm& form, std::span<const std::byte> data, std::span<std::byte> out) {
  if (!makes_sense(form) || data.size() != form.plain_bytes() || out.size() < form.bytes()) return false;
  const PackingKernels& kernels = kernels_for(form.element_bytes);
  std::byte* const elements = out.data() + header_bytes;
  PackedHeader header;
  if (form.as == PackedAs::bits) {
    header = first_two_patterns(kernels, data, form.element_bytes, form.elements);
    if (!kernels.to_bits(data.data(), form.elements, header.first, header.second, elements)) return false;
  } else {
    const auto to_narrow = form.as == PackedAs::bytes ? kernels.to_bytes : kernels.to_words;
    // Indices fit as they are; only what does not needs a pass that finds the lowest.
    if (!to_narrow(data.data(), form.elements, 0, elements)) {
      std::int64_t low = 0, high = 0;
      if (!kernels.range(data.data(), form.elements, low, high)) return false;
      header.first = static_cast<std::uint64_t>(low);
      if (!to_narrow(data.data(), form.elements, header.first, elements)) return false;
    }
  }
  std::memcpy(out.data(), &header, header_bytes);
  return true;
}

void unpack(const PackedForm& form, std::span<const std::byte> packed, std::span<std::byte> out) {
  if (!makes_sense(form) || packed.size() < form.bytes() || out.size() != form.plain_bytes()) {
    throw std::invalid_argument("[packing] " + std::to_string(packed.size()) + " bytes cannot be unpacked into " +
                                std::to_string(out.size()) + ": " + std::to_string(form.elements) + " elements of " +
                                std::to_string(form.element_bytes) + " bytes are " + std::to_string(form.bytes()) +
                                " as " + name(form.as));
  }
  PackedHeader header;
  std::memcpy(&header, packed.data(), header_bytes);
  const std::byte* const elements = packed.data() + header_bytes;
  const PackingKernels& kernels = kernels_for(form.element_bytes);
  switch (form.as) {
    case PackedAs::bits: return kernels.from_bits(elements, form.elements, header.first, header.second, out.data());
    case PackedAs::bytes: return kernels.from_bytes(elements, form.elements, header.first, out.data());
    case PackedAs::words: return kernels.from_words(elements, form.elements, header.first, out.data());
  }
}

}  // namespace reprise
