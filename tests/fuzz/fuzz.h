// What the targets have in common. A target is a function that takes any bytes, and ends the program if what it calls
// does anything but accept them or refuse them with an error of Reprise's; sanitizers see to the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <type_traits>

// Called by libFuzzer, or by driver.cpp where there is none.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace reprise::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// The bytes of an input, from its beginning. Where there are none left, they are zeros.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : left_(std::as_bytes(std::span(data, size))) {}

  template <class T>
  [[nodiscard]] T number() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const auto from = take(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), from.size());
    return value;
  }
  // At most as many as there are.
  [[nodiscard]] std::span<const std::byte> take(std::size_t count) {
    const auto taken = left_.first(count < left_.size() ? count : left_.size());
    left_ = left_.subspan(taken.size());
    return taken;
  }
  [[nodiscard]] std::span<const std::byte> rest() { return take(left_.size()); }
  [[nodiscard]] bool empty() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

}  // namespace reprise::fuzz
