// A trace and a budget in the form that searching for a plan wants.
//
// Nodes are what can stand in a timetable: the moments of the trace, 0..moments-1, each of which has to occur once in
// order, and after them the puts and gets of the tiers, which occur only if it pays. Values are those of the trace,
// and after them the copies in tiers. A put is a node that reads a value and makes its copy; a get reads the copy
// and makes the value. So packing needs no mechanism of its own: it is one more way to recompute a value.
//
// While the program holds a value it costs no decision: its bytes are part of the moments' constant bytes (`at`,
// `before`), uses in that stretch are free, and when the stretch ends the value is there (an anchor), to be kept or
// dropped from then on. Values from outside that the program does not hold are anchored at the start.
#pragma once

#include <span>
#include <vector>

#include "reprise/trace/plan.h"
#include "reprise/trace/timeline.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// Lists of ids, one for each key, in one array.
class IdLists {
 public:
  explicit IdLists(const std::vector<std::vector<Id>>& lists = {});
  std::span<const Id> operator[](Id key) const {
    return {items_.data() + first_[key], items_.data() + first_[key + 1]};
  }

 private:
  std::vector<Id> items_;
  std::vector<Id> first_;
};

class Problem {
 public:
  // What a tier of limited capacity is used for. A search needs a selection of values that fit together, so that no
  // timetable can overfill the tier; a bound has to allow for every value that might go there.
  enum class LimitedTiers { serve_a_selection, serve_all };

  // `exposed`: the share of the time of transfers that counts as cost. Where it happens beside the computation is not
  // known before there is a plan. With 1 a timetable costs at least what its plan does, with 0 at most that.
  Problem(const Trace& trace, const Timeline& timeline, Bytes budget,
          LimitedTiers limited_tiers = LimitedTiers::serve_a_selection, double exposed = 1);

  const Trace& trace;
  const Timeline& timeline;
  Bytes budget;
  double exposed;

  Id moments = 0, nodes = 0;
  Id trace_values = 0, values = 0;
  double plain_cost = 0;  // of every moment once

  // By node.
  IdLists inputs, outputs;
  std::vector<double> cost;
  std::vector<Bytes> workspace;
  std::vector<Bytes> output_bytes;  // of all outputs together
  std::vector<char> may_repeat;     // replayable moments, puts and gets

  // By value.
  std::vector<Bytes> bytes;
  std::vector<Id> maker;       // the moment; `nowhere` for outside values; for copies their put
  IdLists users;               // nodes that read it
  IdLists ways;                // nodes that can make it again: its replayable maker, its gets; for copies their put
  std::vector<Id> zone_first;  // held stretch; nowhere: never held
  std::vector<Id> zone_last;
  std::vector<Id> taken_at;    // the moment that takes its storage over; nowhere: none
  std::vector<Id> extra_need;  // a moment that needs it without reading it: a held stretch starts; nowhere: none

  // By moment: bytes that are live whatever the plan does, while it runs (outputs of its own that need no stay
  // included) and for what happens right before it.
  std::vector<Bytes> at, before;

  // Values that become droppable when this moment is over, because a held stretch ends; the last entry, `moments`, is
  // the start: values from outside.
  IdLists anchored;

  // Returns whether the program holds the value while a first occurrence of the moment runs, or right before it.
  [[nodiscard]] bool held_while(Id value, Id moment, bool first_occurrence) const {
    if (zone_first[value] == nowhere || moment > zone_last[value] || moment < zone_first[value]) return false;
    return moment > zone_first[value] || (first_occurrence && maker[value] == nowhere);
  }

  // Returns the action that a node stands for: `first` is its first occurrence.
  [[nodiscard]] Action action(Id node, bool first) const;
  // Returns the node of a put or get; nowhere if the tier's room is reserved for other values.
  [[nodiscard]] Id node_of(const Action& action) const;
  [[nodiscard]] bool is_put(Id node) const { return node >= moments && (node - moments) % 2 == 0; }
  [[nodiscard]] bool is_get(Id node) const { return node >= moments && (node - moments) % 2 == 1; }

 private:
  struct Copy {
    Id value, tier;
    const TierEntry* entry;
  };
  [[nodiscard]] double put_cost(const Copy& copy) const {
    return copy.entry->put_cost + exposed * copy.entry->put_time;
  }
  [[nodiscard]] double get_cost(const Copy& copy) const {
    return copy.entry->get_cost + exposed * copy.entry->get_time;
  }
  void choose_copies(LimitedTiers limited_tiers);
  void describe_nodes();
  void describe_values();
  void describe_moments();

  std::vector<Copy> copies_;               // node moments + 2 i puts copy i, the next one gets it
  std::vector<std::vector<Id>> copy_ids_;  // by tier and value: a position in copies_; nowhere: none
};

}  // namespace reprise::internal
