// A trace: what happened, as plain data.
//
// A trace is a timeline of moments. A moment runs an operator, or is an event: a place in backward that needs
// values and cannot be replayed. A chain of layers, a graph from a file and a recorded training step are all traces.
//
// What the words mean in bytes, told once and obeyed by the interpreter in simulate/ and by every planner:
//  - A value is resident from the moment that makes it until it is dropped. A value without a maker came from
//    outside: it is resident from the start, or, if the program holds it, from the start of its held stretch.
//  - While the program itself holds a value (`held`) it is resident whatever a plan does: dropping it frees nothing
//    until the stretch is over. A stretch that starts after the value was made needs the value at its first moment.
//  - An output that takes over the storage of an input ends that input when its operator is run and adds no bytes.
//    When the operator is replayed, the input stays and the output is new bytes.
//  - What happens between two moments belongs to the later one: its `other` bytes are live then. A drop only frees, so
//    it is never held against the budget, also not in front of the first moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

using Bytes = std::int64_t;

// Operators, values, moments and tiers are named by their position in the trace's lists.
using Id = std::int32_t;

// The sum of all bytes, and of all costs, in one trace has to stay below these; anything above is a mistake in the
// file, and sums can be formed without a thought of overflow.
inline constexpr Bytes largest_bytes = Bytes{1} << 60;
inline constexpr double largest_cost = 1e18;

// Moments first..last, both included.
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
  Bytes workspace = 0;      // live only while it runs, beside inputs and outputs
  bool replayable = true;
  std::string module = "";  // the part of the model that ran it, as "encoder.layers.3.norm"; empty: not known
  bool operator==(const Operator&) const = default;
};

struct Value {
  Bytes bytes = 0;
  std::optional<Id> maker;       // the operator that makes it; none: it came from outside
  std::optional<Stretch> held;   // when the program itself holds it; none: never
  std::optional<Id> takes_over;  // the input of its maker whose storage it takes over; same bytes
  bool operator==(const Value&) const = default;
};

struct Moment {
  std::optional<Id> runs;  // the operator it runs; none: an event
  Bytes other = 0;         // bytes that are live for other reasons

  // Of an event only; an operator says these itself.
  std::string name;
  std::vector<Id> needs;
  double cost = 0;
  bool operator==(const Moment&) const = default;
};

// A value's terms in a tier.
struct TierEntry {
  Id value = 0;
  Bytes bytes = 0;  // what it occupies there
  double put_cost = 0;
  double get_cost = 0;
  bool operator==(const TierEntry&) const = default;
};

// A place for values beside plain memory: packed memory, a disk.
struct Tier {
  std::string name;
  std::optional<Bytes> capacity;   // none: no limit of its own
  bool in_budget = true;           // whether the bytes there count in the budget
  std::vector<TierEntry> entries;  // the values that may go there, ascending by value
  // The terms of a value; nullptr if it may not go there.
  [[nodiscard]] const TierEntry* find(Id value) const;
  bool operator==(const Tier&) const = default;
};

struct Trace {
  std::string name;
  std::vector<Operator> operators;
  std::vector<Value> values;
  std::vector<Moment> moments;
  std::vector<Tier> tiers;  // places a plan may use

  // What moment m does, whether it runs an operator or is an event.
  [[nodiscard]] const std::vector<Id>& inputs(Id moment) const;
  [[nodiscard]] const std::vector<Id>& outputs(Id moment) const;
  [[nodiscard]] double cost(Id moment) const;
  [[nodiscard]] Bytes workspace(Id moment) const;
  [[nodiscard]] bool replayable(Id moment) const;
  [[nodiscard]] const std::string& label(Id moment) const;
  // Of running every moment once.
  [[nodiscard]] double total_cost() const;

  [[nodiscard]] Id moment_count() const { return static_cast<Id>(moments.size()); }
  [[nodiscard]] Id value_count() const { return static_cast<Id>(values.size()); }

  bool operator==(const Trace&) const = default;
};

// Throws Error with the place ("operators[3].inputs[1]") and the reason if the trace contradicts itself. Everything
// that takes a trace expects one that passes; files are checked when read.
void check(const Trace&);

}  // namespace reprise
