// A timeline answers when things happen in a trace: which moment makes a value, which moments need it. It is derived
// once and read often.
#pragma once

#include <span>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Stands for "no such moment" where an index of a moment is expected.
inline constexpr Id nowhere = -1;

class REPRISE_EXPORT Timeline {
 public:
  explicit Timeline(const Trace& trace);

  // Returns the moment that runs this operator.
  [[nodiscard]] Id moment_of(Id op) const { return moment_of_[op]; }
  // Returns the moment that makes the value; `nowhere` for a value from outside.
  [[nodiscard]] Id made_at(Id value) const { return made_at_[value]; }
  // Returns the moments that need the value, ascending: the ones it is an input of, and the first moment of a held
  // stretch that starts after the value was made.
  [[nodiscard]] std::span<const Id> needed_at(Id value) const {
    return {needs_.data() + first_[value], needs_.data() + first_[value + 1]};
  }
  // Returns the last moment that needs the value, or else the one that makes it; `nowhere` for an unused value from
  // outside.
  [[nodiscard]] Id last_needed(Id value) const {
    return first_[value] == first_[value + 1] ? made_at_[value] : needs_[first_[value + 1] - 1];
  }
  // Returns the moment that runs the operator whose output takes over this value's storage; `nowhere` if none does.
  [[nodiscard]] Id taken_at(Id value) const { return taken_at_[value]; }

  // Return the values whose held stretch starts, or ends, at this moment.
  [[nodiscard]] std::span<const Id> hold_starts(Id moment) const {
    return {starts_.data() + starts_first_[moment], starts_.data() + starts_first_[moment + 1]};
  }
  [[nodiscard]] std::span<const Id> hold_ends(Id moment) const {
    return {ends_.data() + ends_first_[moment], ends_.data() + ends_first_[moment + 1]};
  }

 private:
  std::vector<Id> moment_of_, made_at_, taken_at_;
  std::vector<Id> needs_, starts_, ends_;
  std::vector<std::size_t> first_, starts_first_, ends_first_;
};

}  // namespace reprise
