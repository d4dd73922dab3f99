// The tiers that a session offers to its plans below plain memory, and what they cost.
#pragma once

#include <algorithm>
#include <optional>

#include "reprise/trace/trace.h"

namespace reprise::internal {

// What something takes in microseconds: so much for each value (a file, or a copy), and so much for each byte.
struct TierLine {
  double each = 0, byte = 0;

  [[nodiscard]] double at(Bytes bytes) const { return each + byte * static_cast<double>(bytes); }
};

// One thing that a tier does with a value, as it was measured.
struct TierWork {
  double caller = 0;  // CPU time of those who ask for it and wait for it, for each value
  TierLine cpu;       // CPU time of whoever does it, mostly the thread of a disk
  TierLine time;      // from its begin to its end there

  [[nodiscard]] double cost(Bytes bytes) const { return caller + cpu.at(bytes); }
  // If nobody does anything else meanwhile.
  [[nodiscard]] double alone(Bytes bytes) const { return caller + std::max(cpu.at(bytes), time.at(bytes)); }
};

// Of the tier below a device: a disk, or memory of the host. A transfer costs the computation something (on the CPU all
// CPU time, whoever spends it) and takes time beside it: so a plan with the tier is cheaper than one without only if
// less is spent on it, and it waits no longer.
struct TierTerms {
  const char* name = "disk";
  std::optional<Bytes> capacity;  // empty: no limit of its own
  bool duplex = false;            // it puts and gets at the same time
  Bytes least = 4 << 10;          // less is not worth a transfer
  TierWork put, get, remove;

  [[nodiscard]] bool takes(Bytes bytes) const { return bytes >= least; }
  // What is put is removed some time, mostly when it was got, and the thread does nothing else meanwhile.
  [[nodiscard]] double put_cost(Bytes bytes) const { return put.cost(bytes) + remove.cost(bytes); }
  [[nodiscard]] double get_cost(Bytes bytes) const { return get.cost(bytes); }
  [[nodiscard]] double put_time(Bytes bytes) const { return put.time.at(bytes); }
  [[nodiscard]] double get_time(Bytes bytes) const { return get.time.at(bytes) + remove.time.at(bytes); }
  // All that a plan counts for a value that goes there and comes back.
  [[nodiscard]] double both_ways(Bytes bytes) const {
    return put_cost(bytes) + get_cost(bytes) + put_time(bytes) + get_time(bytes);
  }
  // Without a plan: whoever needs the memory waits for the put, and whoever needs the value for the get.
  [[nodiscard]] double put_alone(Bytes bytes) const { return put.alone(bytes) + remove.cost(bytes); }
  [[nodiscard]] double get_alone(Bytes bytes) const { return get.alone(bytes); }
};

struct OfferedTiers {
  OfferedTiers(bool with_packing) : pack(with_packing) {}
  OfferedTiers(bool with_packing, std::optional<TierTerms> with_tier) : pack(with_packing), below(with_tier) {}

  bool pack;
  std::optional<TierTerms> below;  // empty: none
};

}  // namespace reprise::internal
