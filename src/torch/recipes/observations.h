// What was seen while a pass ran: its moments, their costs, and the other bytes. The bridge makes a trace of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/store/packing.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

struct ObservedMoment {
  std::uint64_t name = 0;  // of an event: the hash of its name
  Id op = -1;              // index of the recipe; -1: an event
  float cost = 0;          // CPU microseconds
};

// The most other bytes between the moment before and this one, and while it ran. After an event, what is there when
// this moment begins, and what was there in between is the event's.
struct OtherBytes {
  Bytes between = 0, within = 0;
  bool operator==(const OtherBytes&) const = default;
};

// A value that an event asked for.
struct Need {
  Id moment = -1, value = -1;
};

struct EventName {
  std::uint64_t hash = 0;
  std::string text;
};

struct Observations {
  std::vector<ObservedMoment> moments;
  std::vector<Need> needs;       // in order of moments
  std::vector<EventName> names;  // of all events, each once, in order of their hashes
  std::vector<Id> moment_of;     // by operator
  std::vector<Id> released;      // by value: the last moment at which the program held it; -1: it still does
  std::vector<std::optional<PackedForm>> forms;  // by value: how it packs
  std::vector<Id> watched;                       // values the program may still hold

  // Adds an event of this name, which begins.
  void add_event(const char* name, std::uint64_t hash);
  // Returns the name of the event that is this moment. Empty if it is none.
  [[nodiscard]] std::string_view event_name(Id moment) const;

  // Returns what was seen before this moment, as if it had just been seen.
  [[nodiscard]] Observations before(Id moment) const;

  // Frees memory that it does not need, because nothing will be added.
  void shrink();
  // Returns about what it takes in memory.
  [[nodiscard]] Bytes bytes() const;
};

}  // namespace reprise::internal
