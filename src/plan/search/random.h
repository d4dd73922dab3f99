// A small, quick generator of random numbers that gives the same numbers on every machine.
#pragma once

#include <cstdint>

namespace reprise::internal {

class Random {
 public:
  explicit Random(std::uint64_t seed) : a_(seed * 0x9E3779B97F4A7C15ull + 1), b_(seed ^ 0xD1B54A32D192ED03ull) {
    for (int i = 0; i < 20; ++i) next();
  }
  // Returns a number from 0 to n - 1.
  std::int32_t below(std::int32_t n) {
    return static_cast<std::int32_t>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }
  // Returns a number from 0 up to, not including, 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }

 private:
  std::uint64_t next() {  // xorshift128+
    std::uint64_t x = a_;
    const std::uint64_t y = b_;
    a_ = y;
    x ^= x << 23;
    b_ = x ^ y ^ (x >> 17) ^ (y >> 26);
    return b_ + y;
  }
  std::uint64_t a_, b_;
};

}  // namespace reprise::internal
