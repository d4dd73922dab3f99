// Arrays of numbers with a shape, which a store takes and gives back.
//
//   std::vector<float> activation = ...;
//   store.put("layer 3", activation);                       // one dimension
//   store.put("layer 4", ArrayView(activation, {16, 64}));  // two
//   const Array back = store.get("layer 4");
//   back.as<float>()[0];
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace reprise {

enum class Element : std::uint8_t { float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64 };
[[nodiscard]] const char* name(Element);
[[nodiscard]] std::size_t bytes_of(Element);
[[nodiscard]] bool is_integer(Element);

// The types of elements: float, double, and the integers except bool and the character types that are for text alone.
template <class T>
concept Number = std::same_as<T, float> || std::same_as<T, double> ||
    (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
     !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>);

template <Number T>
[[nodiscard]] constexpr Element element_of() {
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

// Returns the number of elements. Throws BadOption for a negative size, and if there are so many elements that their
// bytes could not be counted: 2^60 or more.
[[nodiscard]] std::size_t elements_of(const Shape&);

// A view of an array that belongs to somebody else and has to outlive the view.
class ArrayView {
 public:
  // Views numbers as an array of one dimension.
  template <Number T>
  ArrayView(std::span<const T> numbers)
      : ArrayView(element_of<T>(), {static_cast<std::int64_t>(numbers.size())}, std::as_bytes(numbers)) {}
  template <Number T>
  ArrayView(const std::vector<T>& numbers) : ArrayView(std::span<const T>(numbers)) {}

  // Views numbers as an array with a shape. Throws BadOption unless the shape has as many elements as there are
  // numbers.
  template <Number T>
  ArrayView(std::span<const T> numbers, Shape shape)
      : ArrayView(element_of<T>(), std::move(shape), std::as_bytes(numbers)) {}
  template <Number T>
  ArrayView(const std::vector<T>& numbers, Shape shape) : ArrayView(std::span<const T>(numbers), std::move(shape)) {}

  // Views bytes, at any address, as elements. Throws BadOption unless there are as many bytes as the shape has.
  ArrayView(Element, Shape, std::span<const std::byte>);

  [[nodiscard]] Element element() const { return element_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::size_t elements() const { return data_.size() / bytes_of(element_); }
  [[nodiscard]] std::span<const std::byte> data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return data_.size(); }

  // Returns the elements. Throws BadOption if they are of another type, or lie at an address where a T cannot be.
  template <Number T>
  [[nodiscard]] std::span<const T> as() const {
    require(element_of<T>());
    return {reinterpret_cast<const T*>(data_.data()), elements()};
  }

 private:
  void require(Element) const;

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
class Array {
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

  // Returns the elements. Throws BadOption if they are of another type.
  template <Number T>
  [[nodiscard]] std::span<const T> as() const {
    return view().as<T>();
  }
  template <Number T>
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

}  // namespace reprise
