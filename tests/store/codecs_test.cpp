// Codecs: what they promise about every array, whatever it is made of. How exactly the rounding ones round is in
// rounding_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "paths.h"
#include "reprise/store/codec.h"
#include "reprise/trace/error.h"
#include "support/cases.h"
#include "support/random_trace.h"

namespace reprise::codecs_test {
namespace {

using testing::Random;

constexpr Element all_elements[] = {Element::float32,  Element::float64,   Element::int8,      Element::int16,
                                    Element::int32,    Element::int64,     Element::uint8,     Element::uint16,
                                    Element::uint32,   Element::uint64,    Element::boolean,   Element::float16,
                                    Element::bfloat16, Element::complex64, Element::complex128};

// None: not coded. Everything that holds for every codec and array is checked on the way.
std::optional<std::vector<std::byte>> encoded(const Codec& codec, const ArrayView& array) {
  const auto room = codec.room(array);
  if (!room) return std::nullopt;
  // At an odd address, with garbage before and a guard behind.
  std::vector<std::byte> memory(*room + 2, std::byte{0xA5});
  const auto bytes = codec.encode(array, std::span(memory).subspan(1, *room));
  EXPECT_EQ(memory.front(), std::byte{0xA5}) << codec.name();
  EXPECT_EQ(memory.back(), std::byte{0xA5}) << codec.name();
  if (!bytes) return std::nullopt;
  EXPECT_LE(*bytes, *room) << codec.name();
  EXPECT_LE(*bytes, array.bytes()) << codec.name() << " is larger than the array";
  return std::vector(memory.begin() + 1, memory.begin() + 1 + static_cast<std::ptrdiff_t>(*bytes));
}

std::vector<std::byte> decoded(const Codec& codec, std::span<const std::byte> coded, Element element,
                               std::size_t bytes) {
  // Both at odd addresses.
  std::vector<std::byte> from(coded.size() + 1), memory(bytes + 2, std::byte{0x5A});
  std::ranges::copy(coded, from.begin() + 1);
  codec.decode(std::span(from).subspan(1), element, std::span(memory).subspan(1, bytes));
  EXPECT_EQ(memory.front(), std::byte{0x5A}) << codec.name();
  EXPECT_EQ(memory.back(), std::byte{0x5A}) << codec.name();
  return {memory.begin() + 1, memory.end() - 1};
}

// Whether it was coded at all; what is coded exactly comes back.
bool comes_back(const Codec& codec, const ArrayView& array) {
  const auto coded = encoded(codec, array);
  if (!coded) return false;
  const auto back = decoded(codec, *coded, array.element(), array.bytes());
  if (codec.exact())
    EXPECT_TRUE(std::ranges::equal(back, array.data())) << codec.name() << ' ' << name(array.element());
  return true;
}

template <class T>
bool comes_back(const char* name, const std::vector<T>& numbers) {
  return comes_back(codec(name), ArrayView(numbers));
}

// Bytes of an array: noise, a few patterns, or a ramp.
std::vector<std::byte> random_bytes(Random& random, Element element, std::size_t n) {
  const std::size_t size = bytes_of(element);
  std::vector<std::byte> bytes(n * size);
  const std::uint64_t kinds = random.below(4), base = random.next(), range = std::uint64_t{1} << random.below(20);
  std::uint64_t patterns[3];
  for (std::uint64_t& pattern : patterns) pattern = random.next();
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = kinds == 0   ? random.next()
                               : kinds == 1 ? patterns[random.below(2)]
                               : kinds == 2 ? patterns[random.below(3)]
                                            : base + random.below(range);
    const std::uint64_t twice[] = {bits, bits};  // for the largest elements
    std::memcpy(bytes.data() + i * size, twice, size);
  }
  return bytes;
}

TEST(Codecs, AreOrderedByNameAndFoundByIt) {
  ASSERT_FALSE(codecs().empty());
  for (std::size_t i = 0; i < codecs().size(); ++i) {
    const Codec& known = *codecs()[i];
    if (i > 0) EXPECT_LT(codecs()[i - 1]->name(), known.name());
    EXPECT_EQ(&codec(known.name()), &known);
    EXPECT_FALSE(known.summary().empty());
    EXPECT_EQ(known.summary().find('\n'), std::string_view::npos);
  }
}

TEST(Codecs, AreTheFilesOfTheirFolder) {
  std::set<std::string> files, names;
  for (const auto& entry : std::filesystem::directory_iterator(REPRISE_SOURCE_DIR "/src/store/codecs")) {
    files.insert(entry.path().stem());
  }
  for (const Codec* known : codecs()) names.emplace(known->name());
  EXPECT_EQ(files, names);
}

TEST(Codecs, ThatAreNotThereAreAnErrorWithTheNamesOfThoseThatAre) {
  try {
    (void)codec("halves");
    FAIL();
  } catch (const BadOption& error) {
    EXPECT_STREQ(error.what(),
                 "[store] there is no codec 'halves', only: bfloat16, bits, exact, half, int8, small, zstd");
  }
  EXPECT_THROW((void)codec(""), BadOption);
}

TEST(Codecs, SayWhetherTheyAreExact) {
  std::set<std::string_view> exact;
  for (const Codec* known : codecs()) {
    if (known->exact()) exact.insert(known->name());
  }
  EXPECT_EQ(exact, (std::set<std::string_view>{"bits", "exact", "small", "zstd"}));
}

TEST(Codecs, TakeRandomArraysOfAllTypesAndGiveThemBackOrRefuse) {
  std::set<std::string_view> coded, refused;
  for (std::uint64_t seed = 0; seed < testing::cases(400); ++seed) {
    Random random(seed);
    const Element element = all_elements[seed % std::size(all_elements)];
    const std::size_t n = random.below(seed % 7 == 0 ? 5000 : 200);
    const auto bytes = random_bytes(random, element, n);
    const ArrayView array(element, {static_cast<std::int64_t>(n)}, bytes);
    for (const Codec* known : codecs()) (comes_back(*known, array) ? coded : refused).insert(known->name());
  }
  EXPECT_EQ(coded.size(), codecs().size()) << "each was tried with something it can code";
  EXPECT_EQ(refused.size(), codecs().size() - 1) << "and, but for exact, with something it cannot";
}

TEST(Codecs, TakeArraysAtAnyAddress) {
  Random random(5);
  for (const Element element : all_elements) {
    for (std::size_t shift = 0; shift < 9; ++shift) {
      std::vector<std::byte> memory(shift + 300 * bytes_of(element));
      for (std::size_t i = 0; i < 300; ++i) {
        memory[shift + i * bytes_of(element)] = std::byte{static_cast<unsigned char>(random.below(2))};
      }
      const ArrayView array(element, {300}, std::span(memory).subspan(shift));
      for (const Codec* known : codecs()) {
        const bool rounds = !known->exact();
        const bool possible = known->name() == "small"  ? is_integer(element)
                              : known->name() == "bits" ? bytes_of(element) <= 8
                                                        : !rounds || is_real(element);
        if (known->name() != "zstd") EXPECT_EQ(comes_back(*known, array), possible) << known->name();
        if (known->name() == "zstd") EXPECT_TRUE(comes_back(*known, array));
      }
    }
  }
}

TEST(Codecs, TakeEmptyArraysOrRefuseThem) {
  for (const Element element : all_elements) {
    const ArrayView array(element, {0}, {});
    for (const Codec* known : codecs()) {
      const auto coded = encoded(*known, array);
      if (coded) known->decode(*coded, element, {});
    }
    EXPECT_TRUE(comes_back(codec("exact"), array));
  }
  EXPECT_TRUE(comes_back("half", std::vector<float>{}));
  EXPECT_TRUE(comes_back("int8", std::vector<double>{}));
}

TEST(Codecs, ThatRoundTakeRealNumbersOnly) {
  for (const Codec* known : codecs()) {
    if (known->exact()) continue;
    for (const Element element : all_elements) {
      const std::vector<std::byte> zeros(100 * bytes_of(element));
      EXPECT_EQ(known->room({element, {100}, zeros}).has_value(), is_real(element)) << known->name();
      if (is_real(element)) continue;
      std::vector<std::byte> room(10'000);
      EXPECT_FALSE(known->encode({element, {100}, zeros}, room));
      EXPECT_THROW(known->decode(room, element, std::span(room).first(800)), Error);
    }
  }
}

TEST(Codecs, BitsTakesTwoPatternsOfAnyTypeAndNoThird) {
  std::vector<float> mask(5000, 0.0f);
  for (std::size_t i = 0; i < mask.size(); i += 3) mask[i] = 1 / 0.9f;
  EXPECT_TRUE(comes_back("bits", mask));
  EXPECT_EQ(encoded(codec("bits"), mask)->size(), 16u + 625u);
  for (const std::size_t at : {std::size_t{2}, std::size_t{1500}, std::size_t{4999}}) {
    auto spoilt = mask;
    spoilt[at] = -0.0f;
    EXPECT_FALSE(comes_back("bits", spoilt)) << at;
  }
  EXPECT_TRUE(comes_back("bits", std::vector<double>(100, std::numeric_limits<double>::quiet_NaN())));
  EXPECT_TRUE(comes_back("bits", std::vector<std::uint8_t>(100, 1)));
  EXPECT_FALSE(comes_back("bits", std::vector<std::uint8_t>(19, 1))) << "nothing is saved";
  std::vector<std::int32_t> indices(1000);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int32_t>(i % 3);
  EXPECT_FALSE(comes_back("bits", indices)) << "bytes are for small";
}

TEST(Codecs, SmallTakesIntegersInAsFewBytesAsTheirRangeNeeds) {
  const auto coded_bytes = [](std::int64_t low, std::int64_t high) -> std::size_t {
    std::vector<std::int64_t> numbers(1000, low);
    numbers[500] = high;
    numbers[501] = low + 1;
    EXPECT_EQ(comes_back("small", numbers), high - low < 65536);
    const auto coded = encoded(codec("small"), numbers);
    return coded ? coded->size() : 0;
  };
  EXPECT_EQ(coded_bytes(-5, -4), 1u + 16u + 125u);
  EXPECT_EQ(coded_bytes(-5, -3), 1u + 16u + 1000u);
  EXPECT_EQ(coded_bytes(1'000'000, 1'000'255), 1u + 16u + 1000u);
  EXPECT_EQ(coded_bytes(1'000'000, 1'000'256), 1u + 16u + 2000u);
  EXPECT_EQ(coded_bytes(-32768, 32767), 1u + 16u + 2000u);
  EXPECT_EQ(coded_bytes(-32768, 32768), 0u);

  EXPECT_FALSE(comes_back("small", std::vector<float>(1000, 1.0f))) << "a mask of real numbers is for bits";
  std::vector<std::int16_t> wide(1000, 0);
  wide[1] = 1;
  wide[2] = 300;
  EXPECT_FALSE(comes_back("small", wide)) << "words of words save nothing";
  wide[2] = 255;
  EXPECT_TRUE(comes_back("small", wide));
}

TEST(Codecs, SmallRefusesContentsThatChangedSinceItsRoomWasAsked) {
  std::vector<std::int32_t> numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  std::vector<std::byte> room(codec("small").room(numbers).value());
  numbers[4] = 1000;
  EXPECT_FALSE(codec("small").encode(numbers, room));
}

TEST(Codecs, SmallThrowsForAFormThatItsElementsCannotHave) {
  // The right size for 100 elements of two bytes as words, which they are already.
  std::vector<std::byte> coded(1 + 16 + 200);
  for (const int form : {1, 2, 3, 255}) {
    coded[0] = static_cast<std::byte>(form);
    EXPECT_THROW((void)decoded(codec("small"), coded, Element::int16, 200), Error) << form;
  }
  coded.resize(1 + 16 + 100);
  coded[0] = std::byte{1};
  EXPECT_THROW((void)decoded(codec("small"), coded, Element::int8, 100), Error);
}

TEST(Codecs, ZstdTakesWhatGetsSmallerAtAnySize) {
  const Codec& zstd = codec("zstd");
  for (std::size_t n = 1; n < 5'000'000; n += 1 + n / (n < 100'000 ? 7 : 1)) {
    Random random(n);
    std::vector<std::uint8_t> text(n), noise(n);
    for (std::uint8_t& byte : text) byte = static_cast<std::uint8_t>(random.below(4));
    const bool coded = comes_back(zstd, ArrayView(text));
    if (n > 200) EXPECT_TRUE(coded) << n;
    if (n > 1'000'000) continue;
    for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random.next());
    EXPECT_FALSE(comes_back(zstd, ArrayView(noise))) << n;
  }
}

TEST(Codecs, TakeNoRoomThatIsTooSmall) {
  std::vector<std::int32_t> integers(1000, 7);
  integers[1] = 8;
  std::vector<float> reals(1000, 0.5f);
  for (const Codec* known : codecs()) {
    for (const ArrayView& array : {ArrayView(integers), ArrayView(reals)}) {
      const auto room = known->room(array);
      if (!room) continue;
      for (const std::size_t less : {std::size_t{1}, *room / 2, *room}) {
        std::vector<std::byte> memory(*room - less);
        if (const auto bytes = known->encode(array, memory)) EXPECT_LE(*bytes, memory.size()) << known->name();
      }
    }
  }
}

// An array of this type that the codec can code; empty: there is none.
std::vector<std::byte> something_for(const Codec& codec, Element element) {
  Random random(8);
  std::vector<std::byte> bytes(300 * bytes_of(element));
  for (std::size_t i = 0; i < 300; ++i) {
    bytes[i * bytes_of(element)] = std::byte{static_cast<unsigned char>(random.below(codec.name() == "bits" ? 2 : 5))};
  }
  if (!encoded(codec, {element, {300}, bytes})) bytes.clear();
  return bytes;
}

TEST(Codecs, ThrowForCodedBytesOfAnotherSize) {
  for (const Codec* known : codecs()) {
    for (const Element element : all_elements) {
      const auto bytes = something_for(*known, element);
      if (bytes.empty()) continue;
      const auto coded = *encoded(*known, {element, {300}, bytes});
      for (std::size_t size = 0; size < coded.size(); size += size < 40 ? 1 : 17) {
        EXPECT_THROW((void)decoded(*known, std::span(coded).first(size), element, bytes.size()), Error)
            << known->name() << ' ' << size;
      }
      auto longer = coded;
      longer.push_back({});
      EXPECT_THROW((void)decoded(*known, longer, element, bytes.size()), Error) << known->name();
      const std::size_t eight = 8 * bytes_of(element);  // as many as share a byte of bits
      for (const std::size_t other :
           {std::size_t{0}, eight, bytes.size() - eight, bytes.size() + eight, 20 * bytes.size()}) {
        EXPECT_THROW((void)decoded(*known, coded, element, other), Error) << known->name() << ' ' << other;
      }
      if (bytes_of(element) > 1) EXPECT_THROW((void)decoded(*known, coded, element, bytes.size() - 1), Error);
    }
  }
}

// A kept file says what its elements are, and need not be right.
TEST(Codecs, ThrowNothingButErrorsForElementsThatTheyDoNotTake) {
  for (const Codec* known : codecs()) {
    for (const Element element : all_elements) {
      const auto bytes = something_for(*known, element);
      if (bytes.empty()) continue;
      const auto coded = *encoded(*known, {element, {300}, bytes});
      for (const Element other : all_elements) {
        try {
          (void)decoded(*known, coded, other, 300 * bytes_of(other));
        } catch (const Error&) {
        } catch (const std::exception& error) {
          ADD_FAILURE() << known->name() << ", " << name(element) << " as " << name(other) << ": " << error.what();
        }
      }
    }
  }
}

TEST(Codecs, ZstdThrowsForAFrameThatSaysMoreThanItHasRoomForBeforeAnythingIsAllocated) {
  const Codec& zstd = codec("zstd");
  std::vector<std::byte> coded = *encoded(zstd, std::vector<float>(1 << 20));  // zeros: as few bytes as there can be
  EXPECT_NO_THROW(zstd.check_size(coded, Element::float32, 4 << 20));
  // A frame of one segment whose size is in 8 bytes, and what a last block of zeros begins with.
  coded = {std::byte{0x28}, std::byte{0xb5}, std::byte{0x2f}, std::byte{0xfd}, std::byte{0xe0}};
  const std::uint64_t said = std::uint64_t{1} << 40;
  const auto size = std::as_bytes(std::span(&said, 1));
  coded.insert(coded.end(), size.begin(), size.end());
  coded.insert(coded.end(), {std::byte{3}, std::byte{}, std::byte{0x10}, std::byte{}});
  EXPECT_THROW(zstd.check_size(coded, Element::float32, said), Error);
}

TEST(Codecs, NameThemselvesAndTheSizesInErrors) {
  try {
    (void)decoded(codec("half"), std::vector<std::byte>(7), Element::float32, 16);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[store] half: 7 coded bytes are not what 16 bytes of float32 become: they would be 8");
  }
}

TEST(Codecs, NeverReadOrWriteOutsideOfWhatTheyAreGiven) {
  for (std::uint64_t seed = 0; seed < testing::cases(300); ++seed) {
    Random random(seed);
    for (const Codec* known : codecs()) {
      const Element element = all_elements[random.below(std::size(all_elements))];
      const auto bytes = something_for(*known, element);
      if (bytes.empty()) continue;
      // A few bytes changed, or all of them; the sanitizers watch.
      auto coded = *encoded(*known, {element, {300}, bytes});
      const std::uint64_t changes = random.chance(0.1) ? 2 * coded.size() : 1 + random.below(4);
      for (std::uint64_t i = 0; i < changes; ++i) {
        coded[random.chance(0.5) ? random.below(coded.size()) : random.below(20)] =
            static_cast<std::byte>(random.next());
      }
      if (random.chance(0.3)) coded.resize(random.below(2 * coded.size()));
      try {
        (void)decoded(*known, coded, element, bytes.size());
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace reprise::codecs_test
