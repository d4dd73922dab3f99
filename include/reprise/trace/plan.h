// A plan: what to do on a trace, as an ordered list of actions that can be read aloud.
//
//   run 0, run 1, drop 0, run 2, replay 0, run 3
//
// What each action does to the bytes is told in trace.h; which actions are allowed is decided in one place, the
// interpreter in simulate/.
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise {

struct Action {
  enum class Kind : std::uint8_t {
    run,     // a moment, the first and only time
    replay,  // a moment that has run: makes all its outputs again
    drop,    // a resident value
    put,     // a copy of a resident value into a tier
    get,     // a value back from a tier; the copy leaves the tier with the last get before the value is put again
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

[[nodiscard]] const char* name(Action::Kind);

struct Plan {
  Bytes budget = 0;         // live bytes never pass it
  std::vector<Tier> tiers;  // the tiers that put and get name, by position
  std::vector<Action> actions;
  bool operator==(const Plan&) const = default;
};

}  // namespace reprise
