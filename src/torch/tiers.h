// The tiers that a session offers to its plans below plain memory, and what they cost.
#pragma once

#include <algorithm>
#include <optional>

#include "reprise/trace/trace.h"

namespace reprise::internal {

// What something takes in microseconds: so much for each file, and so much for each byte.
struct DiskLine {
  double file = 0, byte = 0;

  [[nodiscard]] double at(Bytes bytes) const { return file + byte * static_cast<double>(bytes); }
};

// One thing that a disk does with a file, as it was measured.
struct DiskWork {
  double caller = 0;  // CPU time of those who ask for it and wait for it, for each file
  DiskLine cpu;       // CPU time of whoever does it, mostly the thread of the disk
  DiskLine time;      // from its begin to its end there

  [[nodiscard]] double cost(Bytes bytes) const { return caller + cpu.at(bytes); }
  // If nobody does anything else meanwhile.
  [[nodiscard]] double alone(Bytes bytes) const { return caller + std::max(cpu.at(bytes), time.at(bytes)); }
};

// Of a disk. A transfer costs CPU time, whoever spends it, and takes time beside the computation: so a plan with a disk
// is cheaper than one without only if the process spends less on it, and waits no longer.
struct DiskTerms {
  std::optional<Bytes> capacity;  // empty: no limit of its own
  Bytes least = 4 << 10;          // less is not worth a file
  DiskWork put, get, remove;

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
  OfferedTiers(bool with_packing, std::optional<DiskTerms> with_disk) : pack(with_packing), disk(with_disk) {}

  bool pack;
  std::optional<DiskTerms> disk;  // empty: none
};

}  // namespace reprise::internal
