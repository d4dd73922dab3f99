// Names that differ only in numbers, as one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::internal {

// Returns the name with every number in it replaced by a zero byte: equal for names that differ only there.
[[nodiscard]] std::string without_numbers(std::string_view name);

// Collects names with the same text beside their numbers: "layer 0…23: norm".
class NumberPattern {
 public:
  void add(std::string_view name);
  [[nodiscard]] std::string text() const;

 private:
  struct Range {
    std::uint64_t least = 0, most = 0;
  };
  std::string first_;
  std::vector<Range> numbers_;
};

}  // namespace reprise::internal
