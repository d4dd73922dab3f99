// What was seen while a period ran: its moments, their costs, and the other bytes. The bridge makes a trace of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/store/packing.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

struct ObservedMoment {
  Id op = -1;              // index of the recipe; -1: an event
  std::uint64_t name = 0;  // of an event: a hash
  float cost = 0;          // CPU microseconds
};

// The most other bytes between the moment before and this one, and while it ran. After an event, what is there when
// this moment begins, and what was there in between is the event's.
struct OtherBytes {
  Bytes between = 0, within = 0;
};

struct Observations {
  std::vector<ObservedMoment> moments;
  std::vector<std::vector<Id>> needs;    // by moment: values that an event asked for; shorter than `moments`
  std::vector<std::string> event_names;  // by moment
  std::vector<Id> moment_of;             // by operator
  std::vector<Id> released;              // by value: the last moment at which the program held it; -1: it still does
  std::vector<std::optional<PackedForm>> forms;  // by value: how it packs
  std::vector<Id> watched;                       // values the program may still hold

  // What was seen before this moment, as if it had just been seen.
  [[nodiscard]] Observations before(Id moment) const;

  // Nothing will be added: takes no more memory than it needs.
  void shrink();
  // What it takes in memory, about.
  [[nodiscard]] Bytes bytes() const;
};

}  // namespace reprise::internal
