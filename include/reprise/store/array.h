// Arrays of numbers with a shape, which a store takes and gives back.
//
//   std::vector<float> activation = ...;
//   store.put("layer 3", activation);                       // one dimension
//   store.put("layer 4", ArrayView(activation, {16, 64}));  // two
//   const Array back = store.get("layer 4");
//   back.as<float>()[0];
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/export.h"

namespace reprise {

enum class Element : std::uint8_t {
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,     // a byte, 0 or 1
  float16,     // IEEE half precision
  bfloat16,    // the upper half of a float32
  complex64,   // two float32
  complex128,  // two float64
};
[[nodiscard]] REPRISE_EXPORT const char* name(Element);
[[nodiscard]] REPRISE_EXPORT std::size_t bytes_of(Element);
[[nodiscard]] REPRISE_EXPORT bool is_integer(Element);
[[nodiscard]] REPRISE_EXPORT bool is_real(Element);  // float32 and float64, which codecs can round

// Maps a type of the caller's to the element whose bits it has: a 16-bit number of some library, for example.
//
//   template <>
//   constexpr reprise::Element reprise::same_as_element<half_float::half> = reprise::Element::float16;
struct NoElement {};
template <class T>
inline constexpr NoElement same_as_element = {};
#ifdef __FLT16_MAX__
template <>
inline constexpr Element same_as_element<_Float16> = Element::float16;
#endif

// The types of elements: float, double, their complex numbers, bool, the integers except the character types that are
// for text alone, _Float16 where the compiler has it, and what `same_as_element` names.
template <class T>
concept Number = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::complex<float>> ||
    std::same_as<T, std::complex<double>> || std::same_as<std::remove_cv_t<decltype(same_as_element<T>)>, Element> ||
    (std::integral<T> && !std::same_as<T, char> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
     !std::same_as<T, char16_t> && !std::same_as<T, char32_t>);

// Objects without a pointer to anything else, as far as the compiler knows: what can be copied byte by byte. Their
// bytes are their value. A struct with pointers of its own has to have StateTraits of its own.
template <class T>
concept PlainObject = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
                      !std::is_null_pointer_v<T> && !std::is_reference_v<T> && !std::is_empty_v<T> &&
                      !std::ranges::view<T>;  // std::span, std::string_view

// Ranges of numbers, or of plain objects, that lie in memory one after the other: std::vector (but not of bool),
// std::array, std::span, arrays of C.
template <class R>
concept NumberRange = std::ranges::contiguous_range<const R> && std::ranges::sized_range<const R> &&
    Number<std::ranges::range_value_t<R>>;
template <class R>
concept PlainRange = std::ranges::contiguous_range<const R> && std::ranges::sized_range<const R> &&
                     !Number<std::ranges::range_value_t<R>> &&
                     PlainObject<std::ranges::range_value_t<R>> && !std::convertible_to<const R&, std::string_view>;

template <Number T>
[[nodiscard]] constexpr Element element_of() {
  if constexpr (std::same_as<std::remove_cv_t<decltype(same_as_element<T>)>, Element>) return same_as_element<T>;
  if constexpr (std::same_as<T, bool>) return Element::boolean;
  if constexpr (std::same_as<T, std::complex<float>>) return Element::complex64;
  if constexpr (std::same_as<T, std::complex<double>>) return Element::complex128;
  if constexpr (std::same_as<T, float>) return Element::float32;
  if constexpr (std::same_as<T, double>) return Element::float64;
  if constexpr (std::signed_integral<T>) {
    constexpr Element by_size[] = {Element::int8, Element::int16, Element::int32, Element::int32, Element::int64};
    return by_size[sizeof(T) / 2];
  }
  if constexpr (std::unsigned_integral<T>) {
    constexpr Element by_size[] = {Element::uint8, Element::uint16, Element::uint32, Element::uint32, Element::uint64};
    return by_size[sizeof(T) / 2];
  }
}

// The sizes of the dimensions, outermost first. Empty for a single number.
using Shape = std::vector<std::int64_t>;

// Returns the number of elements. Throws BadOption for a negative size, and for 2^60 elements or more, whose bytes
// could not be counted.
[[nodiscard]] REPRISE_EXPORT std::size_t elements_of(const Shape&);

// A view of an array that the caller owns and that has to outlive the view.
class REPRISE_EXPORT ArrayView {
 public:
  // Views numbers as an array of one dimension: a std::vector, a std::array, a std::span, an array of C.
  template <NumberRange R>
  ArrayView(const R& numbers) : ArrayView(numbers, {static_cast<std::int64_t>(std::ranges::size(numbers))}) {}
  // Views numbers as an array with a shape. Throws BadOption unless the shape has as many elements as there are
  // numbers.
  template <NumberRange R>
  ArrayView(const R& numbers, Shape shape)
      : ArrayView(element_of<std::ranges::range_value_t<R>>(), std::move(shape), bytes_in(numbers)) {}
  // Views plain objects as bytes, in two dimensions: the objects, and the bytes of each.
  template <PlainRange R>
  ArrayView(const R& objects)
      : ArrayView(Element::uint8,
                  {static_cast<std::int64_t>(std::ranges::size(objects)),
                   static_cast<std::int64_t>(sizeof(std::ranges::range_value_t<R>))},
                  bytes_in(objects)) {}

  // Views bytes, at any address, as elements. Throws BadOption unless there are as many bytes as the shape has.
  ArrayView(Element, Shape, std::span<const std::byte>);

  [[nodiscard]] Element element() const { return element_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::size_t elements() const { return data_.size() / bytes_of(element_); }
  [[nodiscard]] std::span<const std::byte> data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return data_.size(); }

  // Returns the elements. Throws BadOption if they are of another type, or lie at an address where a T cannot be.
  template <class T>
  requires Number<T> || PlainObject<T>
  [[nodiscard]] std::span<const T> as() const {
    if constexpr (Number<T>) {
      require(element_of<T>());
    } else {
      require_objects(sizeof(T), alignof(T));
    }
    return {reinterpret_cast<const T*>(data_.data()), data_.size() / sizeof(T)};
  }

 private:
  template <class R>
  [[nodiscard]] static std::span<const std::byte> bytes_in(const R& range) {
    return std::as_bytes(std::span(std::ranges::data(range), std::ranges::size(range)));
  }
  void require(Element) const;
  void require_objects(std::size_t size, std::size_t alignment) const;

  Element element_;
  Shape shape_;
  std::span<const std::byte> data_;
};

// Frees memory that came from malloc.
struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using ArrayMemory = std::unique_ptr<std::byte[], FreeMemory>;

// An array that owns its memory. It can be moved, and is copied only through a view, so that no copy goes unnoticed.
class REPRISE_EXPORT Array {
 public:
  Array() : Array(Element::float32, {0}) {}
  // Leaves the contents uninitialized.
  Array(Element, Shape);
  explicit Array(const ArrayView&);
  // Takes over this memory, which contains the bytes of the array.
  Array(Element, Shape, ArrayMemory);

  [[nodiscard]] Element element() const { return element_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> data() { return {data_.get(), bytes_}; }
  [[nodiscard]] std::span<const std::byte> data() const { return {data_.get(), bytes_}; }

  [[nodiscard]] ArrayView view() const { return {element_, shape_, data()}; }
  operator ArrayView() const { return view(); }

  // Returns the elements, or the plain objects that were put. Throws BadOption if they are of another type.
  template <class T>
  requires Number<T> || PlainObject<T>
  [[nodiscard]] std::span<const T> as() const { return view().as<T>(); }
  template <class T>
  requires Number<T> || PlainObject<T>
  [[nodiscard]] std::vector<T> to_vector() const {
    const auto numbers = as<T>();
    return {numbers.begin(), numbers.end()};
  }

 private:
  Element element_;
  Shape shape_;
  std::size_t bytes_;
  ArrayMemory data_;
};

// Returns an array of bool, a byte for each: std::vector<bool> has none that could be viewed.
[[nodiscard]] REPRISE_EXPORT Array array_of(const std::vector<bool>&);

}  // namespace reprise
