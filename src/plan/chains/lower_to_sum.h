// The inner loops of the dynamic programmes: element by element, a row becomes the smaller of itself and a sum.
//
// Written in blocks of a fixed length so that compilers turn them into vector instructions at every level of
// optimisation.
#pragma once

#include <cstddef>

namespace reprise::internal {

// best[i] = min(best[i], a[i] + add) for i < count.
inline void lower_to_sum(double* __restrict best, const double* __restrict a, std::ptrdiff_t count, double add) {
  constexpr std::ptrdiff_t block = 8;
  std::ptrdiff_t i = 0;
  for (; i + block <= count; i += block) {
    for (std::ptrdiff_t j = 0; j < block; ++j) {
      const double sum = a[i + j] + add;
      best[i + j] = sum < best[i + j] ? sum : best[i + j];
    }
  }
  for (; i < count; ++i) {
    const double sum = a[i] + add;
    best[i] = sum < best[i] ? sum : best[i];
  }
}

// best[i] = min(best[i], a[i] + b[i] + add) for i < count.
inline void lower_to_sum(double* __restrict best, const double* __restrict a, const double* __restrict b,
                         std::ptrdiff_t count, double add) {
  constexpr std::ptrdiff_t block = 8;
  std::ptrdiff_t i = 0;
  for (; i + block <= count; i += block) {
    for (std::ptrdiff_t j = 0; j < block; ++j) {
      const double sum = a[i + j] + b[i + j] + add;
      best[i + j] = sum < best[i + j] ? sum : best[i + j];
    }
  }
  for (; i < count; ++i) {
    const double sum = a[i] + b[i] + add;
    best[i] = sum < best[i] ? sum : best[i];
  }
}

}  // namespace reprise::internal
