#include "report/number_pattern.h"

#include <fmt/format.h>

#include <algorithm>

namespace reprise::internal {
namespace {

constexpr std::size_t most_digits = 9;  // what is longer is text

bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

// Calls `text` and `number` for the parts of a name, in order.
template <typename Text, typename Number>
void split(std::string_view name, Text text, Number number) {
  while (!name.empty()) {
    const bool digits = is_digit(name[0]);
    const auto end = std::find_if(name.begin(), name.end(), [&](char c) { return is_digit(c) != digits; });
    const std::string_view part = name.substr(0, static_cast<std::size_t>(end - name.begin()));
    name.remove_prefix(part.size());
    if (!digits || part.size() > most_digits) {
      text(part);
      continue;
    }
    std::uint64_t value = 0;
    for (const char c : part) value = 10 * value + static_cast<std::uint64_t>(c - '0');
    number(value);
  }
}

}  // namespace

std::string without_numbers(std::string_view name) {
  std::string result;
  split(
      name, [&](std::string_view part) { result += part; }, [&](std::uint64_t) { result += '\0'; });
  return result;
}

void NumberPattern::add(std::string_view name) {
  std::size_t index = 0;
  const bool first = numbers_.empty() && first_.empty();
  if (first) first_ = name;
  split(
      name, [](std::string_view) {},
      [&](std::uint64_t value) {
        if (first) {
          numbers_.push_back({value, value});
        } else if (index < numbers_.size()) {
          Range& range = numbers_[index++];
          range.least = std::min(range.least, value);
          range.most = std::max(range.most, value);
        }
      });
}

std::string NumberPattern::text() const {
  std::string result;
  std::size_t index = 0;
  split(
      first_, [&](std::string_view part) { result += part; },
      [&](std::uint64_t value) {
        const Range& range = numbers_[index++];
        result += range.least == range.most ? fmt::format("{}", value) : fmt::format("{}…{}", range.least, range.most);
      });
  return result;
}

}  // namespace reprise::internal
