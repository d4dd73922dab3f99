// What a terminal would act on is never printed, wherever a file has it from.
#include "trace/printable.h"

#include <gtest/gtest.h>

#include "reprise/trace/error.h"

namespace reprise::printable_test {
namespace {

using namespace internal;

constexpr const char* not_printable[] = {
    "\x01",         "\x1b",         "\x7f",                          // control characters
    "\xc2\x80",     "\xc2\x9b",     "\xc2\x9f",                      // C1: the second is ESC [ in one character
    "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f",                  // marks of direction
    "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9",  // U+202A, U+202E, U+2066, U+2069
    "\xe2\x80\xa8", "\xe2\x80\xa9",                                  // separators of lines and of paragraphs
    "\xff",         "\x9b",                                          // no UTF-8
};

TEST(Printable, ReplacesWhatATerminalWouldActOn) {
  for (const std::string character : not_printable) {
    const std::string text = "a" + character + "b";
    EXPECT_EQ(printable(text), "a?b");
    EXPECT_EQ(printable_line(text), "a?b");
    EXPECT_EQ(printable_lines(text), "a?b");
  }
  EXPECT_EQ(printable_line(std::string("a\0b", 3)), "a?b");
}

TEST(Printable, LeavesEverythingElseAsItIs) {
  const std::string text = "a~\xc2\xa0é€…𝄞\xe2\x81\xa5\xe2\x81\xaa";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable_line(text), text);
  EXPECT_EQ(printable_lines(text), text);
  EXPECT_EQ(printable_json(text), text);
}

TEST(Printable, NamesAndMessagesAreOneLineAndReportsKeepTheirs) {
  EXPECT_EQ(printable("a\nb\tc"), "a?b?c");
  EXPECT_EQ(printable_line("a\nb\tc"), "a b c");
  EXPECT_EQ(printable_lines("a\nb\tc\r"), "a\nb\tc?");
}

TEST(Printable, OnlyNamesAreShortened) {
  const std::string text(500, 'x');
  EXPECT_EQ(printable(text), std::string(61, 'x') + "...");
  EXPECT_EQ(printable_line(text), text);
}

TEST(Printable, JsonHasItAsEscapes) {
  EXPECT_EQ(printable_json("{\n\"a\x7f\": \"\xc2\x9b\xe2\x80\xae é\xff\"}"),
            "{\n\"a\\u007f\": \"\\u009b\\u202e é\xff\"}");
}

TEST(Printable, WhatAnErrorSaysIsOneLineAndItsPartsAreAsTheyWere) {
  const BadInput error("a\x1b]0;x\x07\n\xff.json", "line 1",
                       "it is \xc2\x9b"
                       "2J");
  EXPECT_STREQ(error.what(), "a?]0;x? ?.json: line 1: it is ?2J");
  EXPECT_EQ(error.file(), "a\x1b]0;x\x07\n\xff.json");
  EXPECT_EQ(error.reason(),
            "it is \xc2\x9b"
            "2J");
  EXPECT_STREQ(BadOption("\x1b[2J").what(), "?[2J");
}

}  // namespace
}  // namespace reprise::printable_test
