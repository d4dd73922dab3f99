// Written in blocks of a fixed length so that compilers turn them into vector instructions at every level of
// optimisation; compiled twice, for the vectors that all processors have and for those that most have.
#include "plan/chains/lower_to_sum.h"

namespace reprise::internal {
namespace {

constexpr std::ptrdiff_t block = 8;

inline void lower_one(double* __restrict best, const double* __restrict a, std::ptrdiff_t count, double add) {
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

inline void lower_two(double* __restrict best, const double* __restrict a, const double* __restrict b,
                      std::ptrdiff_t count, double add) {
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

#if defined(__x86_64__)
[[gnu::target("avx2")]] void lower_one_avx2(double* __restrict best, const double* __restrict a, std::ptrdiff_t count,
                                            double add) {
  lower_one(best, a, count, add);
}
[[gnu::target("avx2")]] void lower_two_avx2(double* __restrict best, const double* __restrict a,
                                            const double* __restrict b, std::ptrdiff_t count, double add) {
  lower_two(best, a, b, count, add);
}
const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif

}  // namespace

void lower_to_sum(double* __restrict best, const double* __restrict a, std::ptrdiff_t count, double add) {
#if defined(__x86_64__)
  if (has_avx2) return lower_one_avx2(best, a, count, add);
#endif
  lower_one(best, a, count, add);
}

void lower_to_sum(double* __restrict best, const double* __restrict a, const double* __restrict b, std::ptrdiff_t count,
                  double add) {
#if defined(__x86_64__)
  if (has_avx2) return lower_two_avx2(best, a, b, count, add);
#endif
  lower_two(best, a, b, count, add);
}

}  // namespace reprise::internal
