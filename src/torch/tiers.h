// The tiers that a session offers to its plans below plain memory, and what they cost.
#pragma once

#include <optional>

#include "reprise/trace/trace.h"

namespace reprise::internal {

// Of a disk: microseconds for each file and for each byte, as they were measured. Writing and reading are counted as if
// nothing happened meanwhile.
struct DiskTerms {
  std::optional<Bytes> capacity;  // empty: no limit of its own
  Bytes least = 4 << 10;          // less is not worth a file
  double put_file = 0, put_byte = 0;
  double get_file = 0, get_byte = 0;

  [[nodiscard]] bool takes(Bytes bytes) const { return bytes >= least; }
  [[nodiscard]] double put_cost(Bytes bytes) const { return put_file + put_byte * static_cast<double>(bytes); }
  [[nodiscard]] double get_cost(Bytes bytes) const { return get_file + get_byte * static_cast<double>(bytes); }
};

struct OfferedTiers {
  OfferedTiers(bool with_packing) : pack(with_packing) {}
  OfferedTiers(bool with_packing, std::optional<DiskTerms> with_disk) : pack(with_packing), disk(with_disk) {}

  bool pack;
  std::optional<DiskTerms> disk;  // empty: none
};

}  // namespace reprise::internal
