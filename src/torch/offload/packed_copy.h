// Packed copies: values without their storage, in few bytes that count in the budget.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "reprise/store/packing.h"
#include "reprise/trace/trace.h"
#include "torch/memory/meter.h"
#include "torch/offload/value_copy.h"

namespace reprise::internal {

// CPU microseconds for each plain byte: packing reads it all and writes little, unpacking the other way round.
inline constexpr double pack_cost = 0.75e-4, unpack_cost = 1.0e-4;

// How these contents pack; none: not at all.
[[nodiscard]] std::optional<PackedForm> form_of_contents(const c10::StorageImpl&, at::ScalarType);

class PackedCopy final : public ValueCopy {
 public:
  // Whether a plan accounts for it; else it is among the other bytes.
  enum class Account : std::uint8_t { plan, other };
  // Nothing if the contents do not fit the form or there is no room for the copy. Whoever unpacks it shares it.
  static std::shared_ptr<const PackedCopy> of(const PackedForm&, const c10::Storage&, Account);
  ~PackedCopy() override;

  [[nodiscard]] Bytes bytes() const { return account_.bytes; }
  [[nodiscard]] c10::Storage contents() const override;

 private:
  PackedCopy() { account_.meter = &meter::cpu(); }
  PackedForm form_;
  std::unique_ptr<std::byte[]> data_;
  meter::Header account_;  // as if it were a tensor
};

}  // namespace reprise::internal
