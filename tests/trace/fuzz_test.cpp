// Files that something happened to. Whatever it was: BadInput, or something that passes every check and can be written
// and read again. Never a crash (sanitizers see to that), never another exception. REPRISE_LONG=1 tries many more.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "reprise/trace/error.h"
#include "reprise/trace/files.h"
#include "support/random_trace.h"
#include "trace/json_reader.h"

namespace reprise::fuzz_test {
using namespace internal;
namespace {

using nlohmann::json;
using testing::Random;

int cases(int few) {
  return std::getenv("REPRISE_LONG") ? 200 * few : few;
}

std::string some_file(Random& random) {
  testing::RandomTraceOptions options;
  options.moments = static_cast<int>(random.below(10));
  options.odd_costs = 0.2;
  options.overlap = 0.5;
  const std::uint64_t seed = random.next();
  switch (random.below(4)) {
    case 0: {
      const Trace trace = testing::random_graph(seed, options.moments);
      json graph = {{"name", "graph"}, {"cost", json::array()}, {"size", json::array()}, {"edges", json::array()}};
      for (std::size_t node = 0; node < trace.operators.size(); ++node) {
        graph["cost"].push_back(trace.operators[node].cost);
        graph["size"].push_back(trace.values[node].bytes);
        for (const Id input : trace.operators[node].inputs) graph["edges"].push_back({input, node});
      }
      return graph.dump();
    }
    case 1: {
      Plan plan{100, testing::random_trace(seed, options).tiers, {}};
      for (Id i = 0; i < 8; ++i) {
        const auto kind = static_cast<Action::Kind>(random.below(5));
        plan.actions.push_back({kind, i, kind >= Action::Kind::put ? 1 : 0});
      }
      return to_json(plan);
    }
    default: return to_json(testing::random_trace(seed, options));
  }
}

// ---- what can happen to the bytes of a file -------------------------------------------------------------------------

const char* some_number(Random& random) {
  constexpr const char* numbers[] = {"0",
                                     "-1",
                                     "1",
                                     "2147483646",
                                     "2147483647",
                                     "2147483648",
                                     "4294967296",
                                     "1e400",
                                     "9223372036854775807",
                                     "9223372036854775808",
                                     "-9223372036854775808",
                                     "1.5",
                                     "-0",
                                     "-0.0",
                                     "1e-400",
                                     "1e6",
                                     "1152921504606846975",
                                     "1152921504606846976",
                                     "NaN",
                                     "1e18",
                                     "00",
                                     "1."};
  return numbers[random.below(std::size(numbers))];
}

void damage(Random& random, std::string& text) {
  if (text.empty()) return;
  const std::size_t at = random.below(text.size()), length = random.below(std::min<std::size_t>(text.size() - at, 40));
  switch (random.below(8)) {
    case 0: text[at] = static_cast<char>(text[at] ^ (1 << random.below(8))); break;
    case 1: text[at] = static_cast<char>(random.below(256)); break;
    case 2: text.resize(at); break;
    case 3: text.erase(at, length); break;
    case 4: text.insert(random.below(text.size()), text.substr(at, length)); break;  // said twice, somewhere else
    case 5: text[at] = "{}[]\",:-0123456789.eE\\u tfn"[random.below(28)]; break;
    case 6: text.insert(at, random.below(3), "{}[]\",:\\"[random.below(8)]); break;
    case 7: {
      const std::size_t from = text.find_first_of("-0123456789", at);
      if (from == std::string::npos) break;
      text.replace(from, text.find_first_not_of("-0123456789.eE", from) - from, some_number(random));
      break;
    }
  }
}

// ---- what can happen to its structure -------------------------------------------------------------------------------

json* some_place(Random& random, json& document) {
  json* at = &document;
  while (at->is_structured() && !at->empty() && !random.chance(0.15)) {
    auto item = at->begin();
    std::advance(item, static_cast<std::ptrdiff_t>(random.below(at->size())));
    at = &*item;
  }
  return at;
}

void damage_structure(Random& random, json& document) {
  json& at = *some_place(random, document);
  switch (random.below(9)) {
    case 0: at = nullptr; break;
    case 1: at = json::array(); break;
    case 2: at = json::object(); break;
    case 3: at = "text"; break;
    case 4: at = static_cast<std::int64_t>(random.next() >> random.below(64)); break;
    case 5: at = random.between(-1, 12); break;
    case 6: at = json(*some_place(random, document)); break;
    case 7:
      if (at.is_array()) at.push_back(at.empty() ? json(0) : json(at[random.below(at.size())]));
      if (at.is_object()) at["surprise"] = 1;
      break;
    case 8:
      if (at.is_structured() && !at.empty()) {
        auto item = at.begin();
        std::advance(item, static_cast<std::ptrdiff_t>(random.below(at.size())));
        at.erase(item);
      }
      break;
  }
}

// ---- what has to hold then ------------------------------------------------------------------------------------------

struct Counts {
  int accepted = 0, rejected = 0;
};

template <typename Parse>
void expect_sound(const std::string& text, Parse parse, Counts& counts) {
  try {
    const auto read = parse(text);
    ++counts.accepted;
    if constexpr (std::is_same_v<decltype(read), const Trace>) check(read);
    ASSERT_EQ(parse(to_json(read)), read) << text;
  } catch (const BadInput& error) {
    ++counts.rejected;
    const std::string what = error.what();
    ASSERT_FALSE(error.reason().empty());
    ASSERT_LT(what.size(), 1000u) << what;
    for (const char c : what) ASSERT_FALSE(0 <= c && c < 0x20) << "not one clean line: " << what;
  } catch (const std::exception& error) {
    FAIL() << error.what() << "\n" << text;
  }
}

// Our reader takes exactly what the library takes for JSON.
void expect_same_grammar(const std::string& text) {
  if (text.find('\0') != std::string::npos) return;  // for the library a NUL is an end, for us it is not JSON
  bool ours = true;
  try {
    JsonReader reader(text);
    reader.skip();
    reader.end();
  } catch (const BadInput&) {
    ours = false;
  }
  bool theirs = true;
  try {
    [[maybe_unused]] const json ignored = json::parse(text);
  } catch (const json::parse_error&) {
    theirs = false;
  } catch (const json::out_of_range&) {
    return;  // a number too large for a double: whether that matters depends on what it is for
  }
  ASSERT_EQ(ours, theirs) << text;
}

void expect_sound(const std::string& text, Counts& counts) {
  expect_sound(
      text, [](const std::string& from) { return parse_trace(from); }, counts);
  expect_sound(
      text, [](const std::string& from) { return parse_plan(from); }, counts);
}

TEST(Fuzz, DamagedBytesAreRejectedOrSound) {
  Random random(1);
  Counts counts;
  for (int i = cases(5000); i > 0 && !HasFatalFailure(); --i) {
    std::string text = some_file(random);
    for (std::uint64_t times = 1 + random.below(3); times > 0; --times) damage(random, text);
    expect_sound(text, counts);
    expect_same_grammar(text);
  }
  EXPECT_GT(counts.accepted, 200);
  EXPECT_GT(counts.rejected, 500);
}

TEST(Fuzz, DamagedStructureIsRejectedOrSound) {
  Random random(2);
  Counts counts;
  for (int i = cases(5000); i > 0 && !HasFatalFailure(); --i) {
    json document = json::parse(some_file(random));
    for (std::uint64_t times = 1 + random.below(2); times > 0; --times) damage_structure(random, document);
    const std::string text = document.dump();
    expect_sound(text, counts);
    expect_same_grammar(text);
  }
  EXPECT_GT(counts.accepted, 200);
  EXPECT_GT(counts.rejected, 500);
}

TEST(Fuzz, PiecesOfTwoFilesAreRejectedOrSound) {
  Random random(3);
  Counts counts;
  for (int i = cases(2000); i > 0 && !HasFatalFailure(); --i) {
    const std::string one = some_file(random), other = some_file(random);
    expect_sound(one.substr(0, random.below(one.size())) + other.substr(random.below(other.size())), counts);
  }
  EXPECT_GT(counts.rejected, 500);
}

TEST(Fuzz, NoiseIsRejected) {
  Random random(4);
  Counts counts;
  constexpr std::string_view alphabet = "{{[[\"\"]]}},,::--01239.eE+\\ubntrfalse \n\t\x01\x80\xc3\xa9\xff";
  for (int i = cases(10000); i > 0 && !HasFatalFailure(); --i) {
    std::string text;
    for (std::uint64_t length = random.below(30); length > 0; --length) text += alphabet[random.below(alphabet.size())];
    expect_sound(text, counts);
    expect_same_grammar(text);
  }
  EXPECT_EQ(counts.accepted, 0);
}

// Values that are valid JSON but hard: the reader must agree with the library on every one of them.
TEST(Fuzz, GrammarIsThatOfTheLibrary) {
  for (const char* text : {"",
                           " ",
                           "0",
                           "-0",
                           "-",
                           "--1",
                           "01",
                           "1.",
                           ".1",
                           "1e",
                           "1e+",
                           "1E-7",
                           "1e5.5",
                           "+1",
                           "0x1",
                           "1 2",
                           "tru",
                           "true",
                           "truee",
                           "null",
                           "nul",
                           "nan",
                           "[",
                           "]",
                           "[]",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "{}",
                           "{",
                           "}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{,}",
                           "{\"a\":1 \"b\":2}",
                           "{1:2}",
                           "\"",
                           "\"\\\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud83c\\udfb5\"",
                           "\"\\ud83c\"",
                           "\"\\udfb5\"",
                           "\"\\ud83c\\u0041\"",
                           "\"\\ud83cx\"",
                           "\"\x7f\"",
                           "\"\t\"",
                           "\"\xc3\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "\"\xe0\x80\x80\"",
                           "\"\xf0\x80\x80\x80\"",
                           "[[[[]]]]",
                           "[[]",
                           "{\"a\":[}",
                           "/**/1",
                           "'a'",
                           "\xef\xbb\xbf[]",
                           "\xef\xbb[]",
                           "[]\x0b",
                           "[1]x",
                           "{\"a\":1,\"a\":2}",
                           "-1e-400"}) {
    expect_same_grammar(text);
  }
}

}  // namespace
}  // namespace reprise::fuzz_test
