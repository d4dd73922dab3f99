// An executable plan as bytes, written by a copy of the process: numbers as this process has them in memory.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "torch/plans/executable_plan.h"

namespace reprise::internal {

class ByteWriter {
 public:
  template <class Number>
  void number(Number number) {
    static_assert(std::is_trivially_copyable_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  template <class Element>
  void list(const std::vector<Element>& list) {
    static_assert(std::is_trivially_copyable_v<Element>);
    number(list.size());
    bytes_.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(Element));
  }
  void text(std::string_view text) {
    number(text.size());
    bytes_ += text;
  }
  void executable(const ExecutablePlan&);

  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads in the same order. Throws Error where the bytes end too soon.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  [[nodiscard]] Number number() {
    Number number;
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }
  template <class Element>
  void list(std::vector<Element>& list) {
    const auto count = number<std::size_t>();
    const std::string_view bytes = take(count, sizeof(Element));
    list.resize(count);
    if (count > 0) std::memcpy(list.data(), bytes.data(), bytes.size());
  }
  [[nodiscard]] std::string text() {
    const auto size = number<std::size_t>();
    return std::string(take(size));
  }
  [[nodiscard]] ExecutablePlan executable();

 private:
  std::string_view take(std::size_t count, std::size_t each = 1);

  std::string_view bytes_;
};

}  // namespace reprise::internal
