// Arrays: shapes that fit their bytes, and types that are what they say.
#include "reprise/store/array.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "reprise/trace/error.h"

namespace reprise {
namespace {

constexpr Element all_elements[] = {Element::float32,  Element::float64,   Element::int8,      Element::int16,
                                    Element::int32,    Element::int64,     Element::uint8,     Element::uint16,
                                    Element::uint32,   Element::uint64,    Element::boolean,   Element::float16,
                                    Element::bfloat16, Element::complex64, Element::complex128};

template <class Make>
std::string error_of(Make make) {
  try {
    make();
  } catch (const BadOption& error) {
    return error.what();
  }
  return "no error";
}

TEST(Array, ElementsHaveTheNamesAndBytesOfTheirTypes) {
  static_assert(element_of<float>() == Element::float32);
  static_assert(element_of<double>() == Element::float64);
  static_assert(element_of<signed char>() == Element::int8);
  static_assert(element_of<unsigned char>() == Element::uint8);
  static_assert(element_of<short>() == Element::int16);
  static_assert(element_of<std::uint16_t>() == Element::uint16);
  static_assert(element_of<int>() == Element::int32);
  static_assert(element_of<unsigned>() == Element::uint32);
  static_assert(element_of<std::int64_t>() == Element::int64);
  static_assert(element_of<long long>() == Element::int64);
  static_assert(element_of<unsigned long long>() == Element::uint64);
  static_assert(element_of<bool>() == Element::boolean);
  static_assert(element_of<std::complex<float>>() == Element::complex64);
  static_assert(element_of<std::complex<double>>() == Element::complex128);
  static_assert(!Number<char> && !Number<wchar_t> && !Number<char32_t> && !Number<long double>);

  for (const Element element : all_elements) {
    // The name ends with the number of bits.
    const std::string text = name(element);
    if (element != Element::boolean) EXPECT_TRUE(text.ends_with(std::to_string(8 * bytes_of(element)))) << text;
    EXPECT_EQ(is_integer(element), text.find("int") != std::string::npos) << text;
  }
  EXPECT_STREQ(name(static_cast<Element>(77)), "?");
  EXPECT_NE(error_of([] { (void)bytes_of(static_cast<Element>(77)); }).find("77"), std::string::npos);
}

TEST(Array, ShapesHaveAsManyElementsAsTheProductOfTheirSizes) {
  EXPECT_EQ(elements_of({}), 1u) << "a single number";
  EXPECT_EQ(elements_of({7}), 7u);
  EXPECT_EQ(elements_of({2, 3, 4}), 24u);
  EXPECT_EQ(elements_of({2, 0, 4}), 0u);
  EXPECT_EQ(elements_of({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}), 0u) << "nothing is too large to be empty";
  EXPECT_EQ(elements_of({(std::int64_t{1} << 60) - 1}), (std::size_t{1} << 60) - 1);
}

TEST(Array, ShapesThatCannotBeAreErrorsWithTheirSizes) {
  EXPECT_EQ(error_of([] { (void)elements_of({2, -3}); }), "[store] shape [2, -3] has the size -3: sizes are 0 or more");
  EXPECT_EQ(error_of([] { (void)elements_of({0, -1}); }), "[store] shape [0, -1] has the size -1: sizes are 0 or more");
  const std::int64_t large = std::int64_t{1} << 32;
  for (const Shape& shape : {Shape{large, large}, Shape{large, large, large}, Shape{large, large / 16},
                             Shape{std::numeric_limits<std::int64_t>::max()}}) {
    EXPECT_NE(error_of([&] { (void)elements_of(shape); }).find("has more than 1152921504606846975 elements"),
              std::string::npos);
    EXPECT_NE(error_of([&] { Array(Element::int8, shape); }), "no error");
  }
}

TEST(Array, ViewsSeeTheNumbersWithoutACopy) {
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const ArrayView flat = numbers, shaped(numbers, {2, 3});
  EXPECT_EQ(flat.shape(), Shape{6});
  EXPECT_EQ(shaped.shape(), (Shape{2, 3}));
  EXPECT_EQ(flat.element(), Element::float32);
  EXPECT_EQ(flat.elements(), 6u);
  EXPECT_EQ(flat.bytes(), 24u);
  EXPECT_EQ(flat.as<float>().data(), numbers.data());
  EXPECT_EQ(shaped.as<float>()[5], 6);

  const double number = 3.5;
  const ArrayView single(std::span(&number, 1), Shape{});
  EXPECT_EQ(single.elements(), 1u);
  EXPECT_EQ(single.as<double>()[0], 3.5);
}

TEST(Array, ViewsWithAShapeOfAnotherSizeAreErrors) {
  const std::vector<float> numbers(6);
  EXPECT_EQ(error_of([&] {
              ArrayView(numbers, {2, 4});
            }),
            "[store] shape [2, 4] of float32 has 32 bytes, but the array has 24");
  EXPECT_EQ(error_of([&] { ArrayView(Element::float64, {2}, std::as_bytes(std::span(numbers))); }),
            "[store] shape [2] of float64 has 16 bytes, but the array has 24");
  EXPECT_EQ(error_of([&] { ArrayView(numbers, {}); }), "[store] shape [] of float32 has 4 bytes, but the array has 24");
}

TEST(Array, ElementsAreOnlySeenAsWhatTheyAre) {
  const std::vector<float> numbers(6);
  const ArrayView view = numbers;
  EXPECT_EQ(error_of([&] { (void)view.as<int>(); }), "[store] the array has elements of float32, not of int32");
  EXPECT_EQ(error_of([&] { (void)Array(view).as<double>(); }),
            "[store] the array has elements of float32, not of float64");
  EXPECT_EQ(error_of([&] { (void)Array(view).to_vector<unsigned>(); }),
            "[store] the array has elements of float32, not of uint32");
}

TEST(Array, BytesAtAnyAddressMakeAViewButNotNumbers) {
  const std::vector<std::int32_t> numbers(3, 7);
  const ArrayView shifted(Element::int32, {2}, std::as_bytes(std::span(numbers)).subspan(1, 8));
  EXPECT_EQ(shifted.elements(), 2u);
  EXPECT_NE(error_of([&] { (void)shifted.as<std::int32_t>(); }).find("is no multiple of 4"), std::string::npos);
  EXPECT_EQ(Array(shifted).as<std::int32_t>()[0], 7 << 24) << "a copy has an address of its own";
}

TEST(Array, KeepsItsOwnCopyOfAView) {
  std::vector<std::int16_t> numbers{1, -2, 3, -4};
  Array array{ArrayView(numbers, {2, 2})};
  numbers.assign(4, 0);
  EXPECT_EQ(array.to_vector<std::int16_t>(), (std::vector<std::int16_t>{1, -2, 3, -4}));
  EXPECT_EQ(array.shape(), (Shape{2, 2}));
  EXPECT_EQ(array.bytes(), 8u);
  array.data()[0] = std::byte{9};
  EXPECT_EQ(array.as<std::int16_t>()[0], 9);

  static_assert(!std::is_copy_constructible_v<Array> && std::is_nothrow_move_constructible_v<Array>);
  const Array moved = std::move(array);
  EXPECT_EQ(moved.view().as<std::int16_t>()[3], -4);
}

TEST(Array, MayBeEmpty) {
  EXPECT_EQ(Array().bytes(), 0u);
  EXPECT_EQ(Array().shape(), Shape{0});
  EXPECT_EQ(Array(Array().view()).to_vector<float>(), std::vector<float>{});
  const ArrayView none = std::span<const double>();
  EXPECT_EQ(Array(none).as<double>().size(), 0u);
  EXPECT_EQ(Array(Element::int64, {3, 0}).view().elements(), 0u);
}

}  // namespace
}  // namespace reprise
