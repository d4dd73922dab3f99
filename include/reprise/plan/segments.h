// Segments: saying by hand which stretches of forward forget what happens inside them.
//
// What is made and used only inside one segment during forward is forgotten after its last use there and replayed,
// segment by segment, when backward needs it. A value that crosses from one segment into another, or into no segment,
// is kept; so is what cannot be rebuilt (it came from outside, or its operator may not be replayed) and what the
// program itself holds into backward.
#pragma once

#include <optional>
#include <vector>

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// Stretches of operators, by their position in the order in which a trace runs them.
class Segments {
 public:
  // `segments` stretches of equal length over this many operators; the last one takes the remainder. Zero operators or
  // zero segments: none. Throws BadOption for a negative number and for more segments than operators.
  [[nodiscard]] static Segments uniform(Id operators, Id segments);

  // Stretches of `length` operators; the last one is what is left. Throws BadOption unless the length is positive.
  [[nodiscard]] static Segments every(Id operators, Id length);

  // Hand-made ranges, both ends included, in any order. Those that overlap are merged. Throws BadOption for a range
  // that is reversed or not within 0..operators-1.
  Segments(Id operators, std::vector<Stretch> ranges);

  [[nodiscard]] Id operators() const { return operators_; }
  // Ascending, disjoint.
  [[nodiscard]] const std::vector<Stretch>& ranges() const { return ranges_; }
  // The position in `ranges()` of the segment that the operator is in; none: it is in no segment. O(log segments).
  [[nodiscard]] std::optional<std::size_t> segment_of(Id op) const;
  [[nodiscard]] bool contains(Id op) const { return segment_of(op).has_value(); }
  // One for each operator: whether it is in a segment.
  [[nodiscard]] std::vector<bool> mask() const;

 private:
  Id operators_ = 0;
  std::vector<Stretch> ranges_;
};

// What segments make of a trace.
class SegmentPlan {
 public:
  // Forward ends at the trace's first event; in a trace without events, where running everything once has most bytes
  // live. Operators of backward are in no segment, whatever the ranges say. Throws BadOption if the segments are over
  // more operators than the trace has. The plan is valid; whether it fits the budget is for the interpreter to say.
  SegmentPlan(const Trace&, const Segments&, Bytes budget);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  // Whether the value is made and used only inside one segment during forward and is given up after that. One that
  // nothing needs in backward is not made again.
  [[nodiscard]] bool forgets(Id value) const { return forgotten_[value]; }

 private:
  Plan plan_;
  std::vector<bool> forgotten_;
};

// The operators of forward: how many uniform segments are laid over.
[[nodiscard]] Id forward_operators(const Trace&);

}  // namespace reprise
