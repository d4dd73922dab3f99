// A list in a sentence: its items, with commas between them.
#pragma once

#include <fmt/format.h>

#include <string>

namespace reprise::internal {

template <class Items>
[[nodiscard]] std::string comma_list(const Items& items) {
  std::string text;
  for (const auto& item : items) text += fmt::format("{}{}", text.empty() ? "" : ", ", item);
  return text;
}

}  // namespace reprise::internal
