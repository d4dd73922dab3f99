// The profile of a pass: all that was measured of it. The journal of the recording that sees the pass first fills it
// (values/journal.h), the recorded pass owns it, and whatever plans the pass reads it there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/store/packing.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

struct ProfiledMoment {
  std::uint64_t name = 0;  // of an event: the hash of its name
  Id op = -1;              // index of the recipe; -1: an event
  float event_cost = 0;    // microseconds; that of an operator is in `PassProfile::costs`
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

struct PassProfile {
  std::vector<ProfiledMoment> moments;
  std::vector<Need> needs;        // in order of moments
  std::vector<EventName> names;   // of all events, each once, in order of their hashes
  std::vector<Id> moment_of;      // by operator
  std::vector<float> costs;       // by operator: microseconds, the least that was measured; 0: not measured
  std::vector<OtherBytes> other;  // by moment: the most of the last steps, see RecordedPass::add_other
  std::vector<Id> released;       // by value: the last moment at which the program held it; -1: it still does
  std::vector<std::optional<PackedForm>> forms;  // by value: how it packs

  // Adds the name of an event that begins.
  void add_event(const char* name, std::uint64_t hash);
  // Returns the name of the event that is this moment. Empty if the moment is none.
  [[nodiscard]] std::string_view event_name(Id moment) const;
  // Returns what the event that is this moment asked for.
  [[nodiscard]] std::span<const Need> needs_of(Id moment) const;
  // Returns how a value packs. Null if it does not, or was not looked at.
  [[nodiscard]] const PackedForm* form_of(Id value) const;
  // Returns what an operator costs. 0 if that was not measured.
  [[nodiscard]] float cost_of(Id op) const { return static_cast<std::size_t>(op) < costs.size() ? costs[op] : 0; }
  // Returns the cost of a moment, to be read or improved.
  [[nodiscard]] float& cost_at(Id moment);
  // Returns the seconds that all moments take.
  [[nodiscard]] double seconds() const;

  // Returns what was measured before this moment, as if it had just been measured.
  [[nodiscard]] PassProfile before(Id moment) const;

  // Frees memory that is there for more to be added.
  void shrink();
  // Returns about how much memory it takes.
  [[nodiscard]] Bytes bytes() const;
};

}  // namespace reprise::internal
