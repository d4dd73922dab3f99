// The inner loops of the dynamic programmes: element by element, a row becomes the smaller of itself and a sum.
#pragma once

#include <cstddef>

namespace reprise::internal {

// best[i] = min(best[i], a[i] + add) for i < count.
void lower_to_sum(double* __restrict best, const double* __restrict a, std::ptrdiff_t count, double add);

// best[i] = min(best[i], a[i] + b[i] + add) for i < count.
void lower_to_sum(double* __restrict best, const double* __restrict a, const double* __restrict b, std::ptrdiff_t count,
                  double add);

}  // namespace reprise::internal
