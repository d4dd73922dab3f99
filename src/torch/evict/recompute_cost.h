// What it would cost to have an evicted value back, for the online policy.
//
// Under the arbiter's lock.
#pragma once

#include <optional>

#include "torch/offload/tier_costs.h"
#include "torch/values/recording.h"

namespace reprise::internal {

inline constexpr double never = 1e30;

// Returns the microseconds of everything on the way to what is resident; or something above `enough`, if it is more.
[[nodiscard]] double cost_of_return(const Recording&, Id value, const std::optional<TierCosts>&, double enough);

// Says whether the value may not come back where it is needed: gradients may take as much as an operator on the way to
// it, and what is left of the budget beside the other bytes has to hold both. Larger values on the way, which are
// evicted before it, do not count as resident.
class HardToRecompute {
 public:
  HardToRecompute(const Recording&, DeviceOrdinal);
  [[nodiscard]] bool operator()(Id value) const;

 private:
  const Recording& r_;
  const DeviceOrdinal device_;
  const Bytes room_;
  const bool any_;  // operator is so large at all
};

}  // namespace reprise::internal
