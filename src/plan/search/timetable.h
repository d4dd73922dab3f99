// A timetable under change: which nodes occur in which order, and the bytes that are live at each occurrence.
//
// A timetable is a list of occurrences: every moment once in order, repeats (replays, puts, gets) anywhere. Drops are
// implied: a value made by an occurrence stays until its last use before it is made again. For a given list that is
// the smallest memory everywhere, so the list is all that has to be searched, and every list of this form is a valid
// plan; only the budget can be broken.
//
// Two changes, each the other's inverse: insert a repeat before an occurrence, erase a repeat. A batch of changes is
// kept or undone as a whole. Occurrences live in blocks so that adding bytes to a long stretch touches few of them.
#pragma once

#include <array>
#include <vector>

#include "plan/search/problem.h"

namespace reprise::internal {

using Occurrence = std::int32_t;
using Stay = std::int32_t;  // of a value in memory: from the occurrence that makes it to its last use

class Timetable {
 public:
  explicit Timetable(const Problem& problem);

  // Every moment once, nothing else.
  void reset();
  // Nodes in order; first occurrences of moments are their runs. Returns false, and resets, if it is not of the form
  // above (a node that may not repeat, a use of something that is not there).
  bool load(const std::vector<Id>& nodes);
  [[nodiscard]] std::vector<Id> nodes() const;

  // ---- changes ----
  // Whether a repeat of the node right before `at` finds what it reads, with stretching; false: some input has to be
  // inserted first.
  [[nodiscard]] bool can_insert(Id node, Occurrence at) const;
  // Returns an input that keeps `can_insert` from being true.
  [[nodiscard]] Id missing_input(Id node, Occurrence at) const;
  Occurrence insert(Id node, Occurrence at);
  // Returns whether the uses of what it makes can be served by an earlier stay.
  [[nodiscard]] bool can_erase(Occurrence repeat) const;
  void erase(Occurrence repeat);
  void keep_changes() { log_.clear(); }
  void undo_changes();
  [[nodiscard]] bool inserted_in_this_batch(Occurrence o) const { return batch_of_[o] == batch_; }
  void begin_batch() { ++batch_; }

  // ---- totals ----
  [[nodiscard]] double cost() const { return cost_; }
  [[nodiscard]] bool fits() const { return over_count_ == 0; }
  [[nodiscard]] double over_bytes() const { return over_bytes_; }  // summed over all occurrences above the budget
  [[nodiscard]] Id over_count() const { return over_count_; }
  [[nodiscard]] Id size() const { return size_; }
  [[nodiscard]] Bytes peak() const;

  // ---- occurrences ----
  [[nodiscard]] Id node_of(Occurrence o) const { return node_[o]; }
  [[nodiscard]] bool is_repeat(Occurrence o) const { return repeat_index_[o] >= 0; }
  [[nodiscard]] bool is_alive(Occurrence o) const { return alive_[o] != 0; }
  [[nodiscard]] const std::vector<Occurrence>& repeats() const { return repeats_; }
  [[nodiscard]] Occurrence first_of(Id moment) const { return moment; }
  [[nodiscard]] Occurrence next(Occurrence o) const;      // -1 after the last
  [[nodiscard]] Occurrence previous(Occurrence o) const;  // -1 before the first
  // Grows along the timetable; only comparisons mean something, and only until the next change.
  [[nodiscard]] Id order(Occurrence o) const { return rank_[place_[o].block] * (2 * capacity) + place_[o].index; }
  [[nodiscard]] Bytes live_at(Occurrence o) const {
    const Place& at = place_[o];
    return blocks_[at.block].live[at.index] + summaries_[at.block].addend;
  }
  // Returns the moment that is next to run when this occurrence takes place.
  [[nodiscard]] Id moment_at(Occurrence o) const { return moment_[o]; }
  // By position: any occurrence in a random block, for sampling.
  [[nodiscard]] Id block_count() const { return static_cast<Id>(order_of_blocks_.size()); }
  [[nodiscard]] std::span<const Occurrence> block(Id rank) const {
    const Block& b = blocks_[order_of_blocks_[rank]];
    return {b.occurrences.data(), b.occurrences.data() + b.count};
  }
  [[nodiscard]] Id rank_of_block(Occurrence o) const { return rank_[place_[o].block]; }
  [[nodiscard]] Id over_in_block(Id rank) const { return summaries_[order_of_blocks_[rank]].over_count; }
  // Returns whether an occurrence strictly between the two is above the budget.
  [[nodiscard]] bool over_between(Occurrence a, Occurrence b) const;

  // ---- stays ----
  // Stays of what an occurrence makes: consecutive ids, one for each output of its node.
  [[nodiscard]] Stay first_stay(Occurrence o) const { return first_stay_[o]; }
  [[nodiscard]] Stay stay_count() const { return static_cast<Stay>(stay_value_.size()); }
  [[nodiscard]] bool is_stay(Stay s) const { return stay_end_[s] >= 0; }  // false: held by the program, or erased
  [[nodiscard]] Id value_of(Stay s) const { return stay_value_[s]; }
  [[nodiscard]] Occurrence birth(Stay s) const { return stay_birth_[s]; }
  [[nodiscard]] Occurrence end(Stay s) const { return stay_end_[s]; }
  [[nodiscard]] const std::vector<Stay>& anchors() const { return anchors_; }
  // Returns the stay that serves a use of the value at this occurrence; -1: the program holds it, or it is not there at
  // all.
  [[nodiscard]] Stay serving(Id value, Occurrence at) const;
  [[nodiscard]] const std::vector<Stay>& stays_of(Id value) const { return stays_of_[value]; }
  // Returns the last use strictly between two orders; -1: none.
  [[nodiscard]] Occurrence last_use_between(Id value, Id after, Id before) const;
  // All uses of a stay, in order.
  void uses_of(Stay s, std::vector<Occurrence>& uses) const;
  [[nodiscard]] const std::vector<Occurrence>& occurrences_of(Id node) const { return occurrences_of_[node]; }

  // For tests: the books agree with a timetable loaded afresh.
  [[nodiscard]] bool agrees_with_itself() const;

 private:
  static constexpr Id capacity = 128;
  struct Block {
    Id count = 0;
    std::array<Occurrence, capacity> occurrences;
    std::array<Bytes, capacity> live;  // without the block's addend
  };
  // Apart from the blocks: changes to long stretches touch only this.
  struct Summary {
    Bytes addend = 0, most = 0;  // most: largest `live`, without the addend
    double over_bytes = 0;
    Id over_count = 0;
  };
  struct Place {
    Id block = 0, index = 0;
  };
  struct Change {
    bool inserted;
    Id node;
    Occurrence where;  // the inserted one, or the one before which the erased one stood
  };

  // What `load` has read so far.
  struct Reading {
    std::vector<Occurrence> sequence;
    std::vector<Bytes> own;  // by position: see own_bytes
  };
  void clear();
  // False: it is not of the form above.
  bool read(const std::vector<Id>& nodes, Reading&);
  bool read_first(Occurrence, Reading&);
  bool read_repeat(Occurrence, Id next_moment, Reading&);
  void lay_out(const Reading&);  // into blocks
  void add_stay(Id value, Occurrence birth, bool real);
  void add_anchors(Id key, Occurrence birth);
  // Extends the value's last stay to here. Returns false if no stay can be extended.
  bool use(Id value, Occurrence at);

  Occurrence new_occurrence(Id node);
  // Bytes of an occurrence that are there whatever stays cover it.
  [[nodiscard]] Bytes own_bytes(Occurrence) const;
  Occurrence insert_unlogged(Id node, Occurrence at);
  // Makes the repeat, right before `at`, serve the later uses of what it makes; returns the bytes that this frees
  // there.
  Bytes hand_over_uses(Occurrence repeat, Occurrence at);
  // What the repeat reads stays up to it; returns the bytes that are there for that.
  Bytes stretch_inputs(Occurrence repeat, Occurrence at);
  void put_into_block(Occurrence, Occurrence at, Bytes live);
  void list_in_order(Occurrence repeat);
  void erase_unlogged(Occurrence repeat);
  void add_between(Occurrence after, Occurrence before, Bytes amount);  // to occurrences strictly between
  void add_in_block(Id block, Id from, Id to, Bytes amount);
  void summarise(Id block);
  void split(Id block);
  [[nodiscard]] bool crosses_take_over(Id value, Occurrence birth, Occurrence use) const {
    const Id taken = problem_.taken_at[value];
    return taken != nowhere && moment_[birth] <= taken && moment_[use] > taken;
  }
  [[nodiscard]] bool held_at(Id value, Occurrence o) const {
    return problem_.zone_first[value] != nowhere && problem_.held_while(value, moment_[o], !is_repeat(o));
  }
  [[nodiscard]] Stay latest_before(Id value, Id order) const;
  // Returns the stay before `s` in time that would serve its uses if `s` went; -1: none.
  [[nodiscard]] Stay stay_before(Stay s) const;

  const Problem& problem_;
  Occurrence start_;  // a place before the first moment, where values from outside are anchored

  std::vector<Id> node_, moment_, repeat_index_;
  std::vector<Place> place_;
  std::vector<Stay> first_stay_;
  std::vector<char> alive_;
  std::vector<std::uint32_t> batch_of_;
  std::uint32_t batch_ = 0;
  std::vector<std::vector<Occurrence>> spare_;           // by node: erased occurrences to use again
  std::vector<std::vector<Occurrence>> occurrences_of_;  // by node, in order
  std::vector<Occurrence> repeats_;

  std::vector<Id> stay_value_;
  std::vector<Occurrence> stay_birth_, stay_end_;
  std::vector<std::vector<Stay>> stays_of_;  // by value, in order
  std::vector<Stay> anchors_;

  std::vector<Block> blocks_;
  std::vector<Summary> summaries_;
  std::vector<Id> order_of_blocks_, rank_;  // by position: the block; by block: the position

  double cost_ = 0, over_bytes_ = 0;
  Id over_count_ = 0, size_ = 0;
  std::vector<Change> log_;
};

}  // namespace reprise::internal
