// A trace is a record of what happened, as plain data.
//
// A trace is a timeline of moments. A moment runs an operator, or is an event: a place in backward that needs
// values and cannot be replayed. An event that has a workspace is written as an operator (`Operator::event`). A chain
// of layers, a graph from a file and a recorded training step are all traces.
//
// The words have these meanings in bytes, for the interpreter in simulate/ and for every planner:
//  - A value is resident from the moment that makes it until it is dropped. A value without a maker came from
//    outside: it is resident from the start, or, if the program holds it, from the start of its held stretch.
//  - While the program itself holds a value (`held`), it is resident whatever a plan does: dropping it frees nothing
//    until the stretch is over. A stretch that starts after the value was made needs the value at its first moment.
//  - An output that takes over the storage of an input ends that input when its operator is run and adds no bytes.
//    When the operator is replayed, the input stays and the output is new bytes.
//  - The time between two moments belongs to the later one: its `other` bytes are live then. A drop only frees, so it
//    is never checked against the budget, not even in front of the first moment.
//
// They have these meanings in time:
//  - The computation does the actions of a plan one after the other. To run or replay takes it the cost.
//  - A transfer, a put or a get, takes the computation its cost, and then the tier its time, beside the computation. A
//    tier does one transfer after the other, in the order of the plan; a duplex one does puts and gets at the same
//    time. A put begins when the value is there, a get when the copy is.
//  - An action that needs a value that is being got waits for it. One that drops a value, or takes over its storage,
//    waits for its transfers. So bytes do not depend on times: a put frees when it is over, because the drop waits, and
//    a get needs its bytes from its start. The program may write into what it holds: a put of that is waited for at
//    once, and all transfers of a value are when the program begins to hold it.
//  - A copy leaves its tier when its last get is over. A put into a duplex tier of limited capacity begins after the
//    gets before it, whose room it may need.
//  - What a plan costs is the time at which the computation has done all actions: their costs, and what it has waited.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/export.h"

namespace reprise {

using Bytes = std::int64_t;

// Operators, values, moments and tiers are named by their position in the trace's lists.
using Id = std::int32_t;

// Limits of the sum of all bytes, and of all costs, in one trace. A larger sum is a mistake in the file; below them, no
// sum can overflow.
inline constexpr Bytes largest_bytes = Bytes{1} << 60;
inline constexpr double largest_cost = 1e18;

// A stretch of moments, first..last, both included.
struct Stretch {
  Id first = 0;
  Id last = 0;
  bool operator==(const Stretch&) const = default;
};

struct Operator {
  std::string name;
  std::vector<Id> inputs;   // values, each at most once
  std::vector<Id> outputs;  // values, none if the operator only has effects
  double cost = 0;          // of running or replaying it once; any unit, the same in the whole trace
  Bytes workspace = 0;      // live only while it runs, in addition to inputs and outputs
  bool replayable = true;   // false: it runs once and never again
  std::string module = "";  // the part of the model that ran it, as "encoder.layers.3.norm"; empty: not known
  // An event that has a workspace: it makes nothing and is not replayed.
  bool event = false;
  bool operator==(const Operator&) const = default;
};

struct Value {
  Bytes bytes = 0;
  std::optional<Id> maker;       // the operator that makes it; empty: it came from outside
  std::optional<Stretch> held;   // the moments during which the program itself holds it; empty: never
  std::optional<Id> takes_over;  // the input of its maker whose storage it takes over; same bytes
  bool operator==(const Value&) const = default;
};

struct Moment {
  std::optional<Id> runs;  // the operator it runs; empty: an event
  Bytes other = 0;         // bytes that are live for other reasons

  // For events only; an operator has its own.
  std::string name;
  std::vector<Id> needs;
  double cost = 0;
  bool operator==(const Moment&) const = default;
};

// A value's size and costs in a tier.
struct TierEntry {
  Id value = 0;
  Bytes bytes = 0;      // the bytes it occupies there
  double put_cost = 0;  // what the computation pays
  double get_cost = 0;
  double put_time = 0;  // what the tier takes after that, beside the computation; 0 in a tier that is in the budget
  double get_time = 0;
  bool operator==(const TierEntry&) const = default;
};

// A place for values in addition to plain memory: packed memory, a disk.
struct REPRISE_EXPORT Tier {
  std::string name;
  std::optional<Bytes> capacity;   // empty: no limit of its own
  bool in_budget = true;           // true if the bytes there count in the budget
  std::vector<TierEntry> entries;  // the values that may go there, ascending by value
  bool duplex = false;             // true if it does puts and gets at the same time
  // Returns the entry of a value. Null if the value may not go there.
  [[nodiscard]] const TierEntry* find(Id value) const;
  // Returns whether any of its transfers takes time while the computation goes on.
  [[nodiscard]] bool overlaps() const;
  bool operator==(const Tier&) const = default;
};

struct REPRISE_EXPORT Trace {
  std::string name;
  std::vector<Operator> operators;
  std::vector<Value> values;
  std::vector<Moment> moments;
  std::vector<Tier> tiers;  // places a plan may use

  // Describe a moment, whether it runs an operator or is an event.
  [[nodiscard]] const std::vector<Id>& inputs(Id moment) const;
  [[nodiscard]] const std::vector<Id>& outputs(Id moment) const;
  [[nodiscard]] double cost(Id moment) const;
  [[nodiscard]] Bytes workspace(Id moment) const;
  [[nodiscard]] bool replayable(Id moment) const;
  [[nodiscard]] const std::string& label(Id moment) const;
  // True for an event, whether or not an operator stands for it. The first one is where backward begins.
  [[nodiscard]] bool is_event(Id moment) const;
  // Returns the cost of running every moment once.
  [[nodiscard]] double total_cost() const;

  [[nodiscard]] Id moment_count() const { return static_cast<Id>(moments.size()); }
  [[nodiscard]] Id value_count() const { return static_cast<Id>(values.size()); }

  bool operator==(const Trace&) const = default;
};

// Throws BadInput with the place ("operators[3].inputs[1]") and the reason if the trace contradicts itself. Every
// function that takes a trace expects one that passes; files are checked when read.
REPRISE_EXPORT void check(const Trace&);

}  // namespace reprise
