// Segments choose by hand which stretches of forward evict the values inside them, as activation checkpointing does.
//
// A value that is made and used only inside one segment during forward is evicted after its last use there and
// replayed, segment by segment, when backward needs it. A value that crosses from one segment into another, or into no
// segment, is kept. So is a value that cannot be recomputed (it came from outside, or its operator may not be
// replayed), and one that the program itself holds into backward.
#pragma once

#include <optional>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise {

// A set of stretches of operators, by their position in the order in which a trace runs them.
class REPRISE_EXPORT Segments {
 public:
  // Returns `segments` stretches of equal length over this many operators; the last one takes the remainder. Zero
  // operators or zero segments: none. Throws BadOption for a negative number and for more segments than operators.
  [[nodiscard]] static Segments uniform(Id operators, Id segments);

  // Returns stretches of `length` operators; the last one takes the rest. Throws BadOption unless the length is
  // positive.
  [[nodiscard]] static Segments every(Id operators, Id length);

  // Takes ranges made by hand, both ends included, in any order. Those that overlap are merged. Throws BadOption for a
  // range that is reversed or not within 0..operators-1.
  Segments(Id operators, std::vector<Stretch> ranges);

  [[nodiscard]] Id operators() const { return operators_; }
  // Returns the stretches, ascending and disjoint.
  [[nodiscard]] const std::vector<Stretch>& ranges() const { return ranges_; }
  // Returns the position in `ranges()` of the segment that the operator is in. Empty if it is in no segment. Takes
  // O(log segments).
  [[nodiscard]] std::optional<std::size_t> segment_of(Id op) const;
  [[nodiscard]] bool contains(Id op) const { return segment_of(op).has_value(); }
  // Returns, for each operator, whether it is in a segment.
  [[nodiscard]] std::vector<bool> mask() const;

 private:
  Id operators_ = 0;
  std::vector<Stretch> ranges_;
};

// The plan that segments make for a trace.
class REPRISE_EXPORT SegmentPlan {
 public:
  // Forward ends at the trace's first event; in a trace without events, where running everything once has most bytes
  // live. Operators of backward are in no segment, whatever the ranges say. Throws BadOption if the segments are over
  // more operators than the trace has. The plan is valid; the interpreter decides whether it fits the budget.
  SegmentPlan(const Trace&, const Segments&, Bytes budget);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  // True if the value is made and used only inside one segment during forward and is evicted after that. A value that
  // nothing needs in backward is not made again.
  [[nodiscard]] bool evicts(Id value) const { return evicted_[value]; }

 private:
  Plan plan_;
  std::vector<bool> evicted_;
};

// Returns the number of operators of forward, over which uniform segments are laid.
[[nodiscard]] REPRISE_EXPORT Id forward_operators(const Trace&);

}  // namespace reprise
