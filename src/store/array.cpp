#include "reprise/store/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "reprise/trace/error.h"
#include "store/comma_list.h"

namespace reprise {
namespace {

constexpr std::size_t most_elements = (std::size_t{1} << 60) - 1;  // of 8 bytes: still a std::ptrdiff_t

std::size_t bytes_needed(Element element, const Shape& shape) {
  const std::size_t elements = elements_of(shape);
  if (elements > 8 * most_elements / bytes_of(element)) {
    throw BadOption(fmt::format("[store] shape [{}] of {} has more bytes than can be counted",
                                internal::comma_list(shape), name(element)));
  }
  return elements * bytes_of(element);
}

}  // namespace

const char* name(Element element) {
  switch (element) {
    case Element::float32: return "float32";
    case Element::float64: return "float64";
    case Element::int8: return "int8";
    case Element::int16: return "int16";
    case Element::int32: return "int32";
    case Element::int64: return "int64";
    case Element::uint8: return "uint8";
    case Element::uint16: return "uint16";
    case Element::uint32: return "uint32";
    case Element::uint64: return "uint64";
    case Element::boolean: return "bool";
    case Element::float16: return "float16";
    case Element::bfloat16: return "bfloat16";
    case Element::complex64: return "complex64";
    case Element::complex128: return "complex128";
  }
  return "?";
}

std::size_t bytes_of(Element element) {
  switch (element) {
    case Element::boolean:
    case Element::int8:
    case Element::uint8: return 1;
    case Element::float16:
    case Element::bfloat16:
    case Element::int16:
    case Element::uint16: return 2;
    case Element::float32:
    case Element::int32:
    case Element::uint32: return 4;
    case Element::float64:
    case Element::complex64:
    case Element::int64:
    case Element::uint64: return 8;
    case Element::complex128: return 16;
  }
  throw BadOption(fmt::format("[store] there is no type of elements with the number {}", static_cast<int>(element)));
}

bool is_integer(Element element) {
  return element >= Element::int8 && element <= Element::uint64;
}

bool is_real(Element element) {
  return element == Element::float32 || element == Element::float64;
}

std::size_t elements_of(const Shape& shape) {
  if (const auto negative = std::ranges::find_if(shape, [](std::int64_t size) { return size < 0; });
      negative != shape.end()) {
    throw BadOption(
        fmt::format("[store] shape [{}] has the size {}: sizes are 0 or more", internal::comma_list(shape), *negative));
  }
  // Before multiplying: an array without elements is fine, however large its other sizes are.
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::size_t elements = 1;
  for (const std::int64_t size : shape) {
    if (static_cast<std::size_t>(size) > most_elements / elements) {
      throw BadOption(
          fmt::format("[store] shape [{}] has more than {} elements", internal::comma_list(shape), most_elements));
    }
    elements *= static_cast<std::size_t>(size);
  }
  return elements;
}

ArrayView::ArrayView(Element element, Shape shape, std::span<const std::byte> data)
    : element_(element), shape_(std::move(shape)), data_(data) {
  if (const std::size_t needed = bytes_needed(element_, shape_); needed != data_.size()) {
    throw BadOption(fmt::format("[store] shape [{}] of {} has {} bytes, but the array has {}",
                                internal::comma_list(shape_), name(element_), needed, data_.size()));
  }
}

void ArrayView::require(Element element) const {
  if (element != element_) {
    throw BadOption(fmt::format("[store] the array has elements of {}, not of {}", name(element_), name(element)));
  }
  const bool complex = element_ == Element::complex64 || element_ == Element::complex128;
  const std::size_t alignment = bytes_of(element_) / (complex ? 2 : 1);
  if (const auto address = reinterpret_cast<std::uintptr_t>(data_.data()); address % alignment != 0) {
    throw BadOption(
        fmt::format("[store] elements of {} cannot be used where they are: the address {:#x} is no "
                    "multiple of {}",
                    name(element_), address, alignment));
  }
}

void ArrayView::require_objects(std::size_t size, std::size_t alignment) const {
  if (element_ != Element::uint8 || shape_.empty() || shape_.back() != static_cast<std::int64_t>(size)) {
    throw BadOption(fmt::format("[store] the array has elements of {} in shape [{}], and no objects of {} bytes",
                                name(element_), internal::comma_list(shape_), size));
  }
  if (const auto address = reinterpret_cast<std::uintptr_t>(data_.data()); address % alignment != 0) {
    throw BadOption(fmt::format("[store] objects cannot be used where they are: the address {:#x} is no multiple of {}",
                                address, alignment));
  }
}

Array::Array(Element element, Shape shape)
    : element_(element),
      shape_(std::move(shape)),
      bytes_(bytes_needed(element_, shape_)),
      data_(static_cast<std::byte*>(std::malloc(std::max<std::size_t>(1, bytes_)))) {
  if (!data_) throw std::bad_alloc();
}

Array::Array(Element element, Shape shape, ArrayMemory memory)
    : element_(element), shape_(std::move(shape)), bytes_(bytes_needed(element_, shape_)), data_(std::move(memory)) {}

Array::Array(const ArrayView& view) : Array(view.element(), view.shape()) {
  std::ranges::copy(view.data(), data_.get());
}

Array array_of(const std::vector<bool>& bits) {
  Array array(Element::boolean, {static_cast<std::int64_t>(bits.size())});
  std::ranges::transform(bits, array.data().begin(), [](bool bit) { return static_cast<std::byte>(bit); });
  return array;
}

}  // namespace reprise
