// A plan is an ordered list of actions on a trace, which can be read aloud.
//
//   run 0, run 1, drop 0, run 2, replay 0, run 3
//
// trace.h defines what each action does to the bytes. The interpreter in simulate/ is the one place that decides which
// actions are allowed.
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise {

struct Action {
  enum class Kind : std::uint8_t {
    run,     // runs a moment, the first and only time
    replay,  // replays (recomputes) a moment that has run: makes all its outputs again
    drop,    // drops (evicts) a resident value
    put,     // puts a copy of a resident value into a tier
    get,     // gets a value back from a tier; the copy leaves the tier with the last get before the value is put again
  };
  Kind kind = Kind::run;
  Id target = 0;  // a moment for run and replay, a value for drop, put and get
  Id tier = 0;    // for put and get

  static Action run(Id moment) { return {Kind::run, moment, 0}; }
  static Action replay(Id moment) { return {Kind::replay, moment, 0}; }
  static Action drop(Id value) { return {Kind::drop, value, 0}; }
  static Action put(Id value, Id tier) { return {Kind::put, value, tier}; }
  static Action get(Id value, Id tier) { return {Kind::get, value, tier}; }
  bool operator==(const Action&) const = default;
};

[[nodiscard]] REPRISE_EXPORT const char* name(Action::Kind);

struct Plan {
  Bytes budget = 0;         // the most bytes that may be live
  std::vector<Tier> tiers;  // the tiers that put and get name, by position
  std::vector<Action> actions;
  bool operator==(const Plan&) const = default;
};

}  // namespace reprise
