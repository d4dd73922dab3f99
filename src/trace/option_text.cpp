#include "trace/option_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "reprise/trace/error.h"

namespace reprise::internal {

double read_number(std::string_view text, double largest) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= largest) return number;
  if (std::isinf(largest)) throw BadOption("it must be a number that is not negative, or inf");
  throw BadOption(fmt::format("it must be a number from 0 to {:.0f}", largest));
}

bool read_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  throw BadOption("it must be on or off");
}

std::size_t read_word(std::string_view text, std::span<const std::string_view> words) {
  std::string wanted(text);
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  const auto found = std::find(words.begin(), words.end(), wanted);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    all += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + std::string(words[i]);
  }
  throw BadOption("it must be " + all);
}

std::size_t letters_between(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1), last = row, last_but_one;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= one.size(); ++i) {
    last_but_one = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const bool same = one[i - 1] == other[j - 1];
      row[j] = std::min({last[j - 1] + (same ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) row[j] = std::min(row[j], last_but_one[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace reprise::internal
