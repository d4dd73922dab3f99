// The states and tapes that a chain holds, and the account of everything it stores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "chain/state_tiers.h"
#include "reprise/chain/chain_states.h"
#include "reprise/chain/statistics.h"
#include "trace/sparse_table.h"

namespace reprise::internal {

// A state may be stored in several forms at a time: held as it is, saved by hand, in tiers. It is remembered while it
// is stored in any.
class HeldStates {
 public:
  HeldStates(ChainStates& states, const StateTiers& tiers) : states_(states), tiers_(tiers) {}

  // Drops everything, what was saved by hand included, and settles the account. The tiers are empty already.
  void clear() noexcept;

  // ---- as they are ----

  // Returns the slot of a state, `lent` if it is the caller's, `nowhere` if it is not held.
  [[nodiscard]] Id slot(Id state) const { return by_state_[state].slot; }
  [[nodiscard]] Id tape_slot(Id layer) const { return tapes_[layer].slot; }
  void hold(Id state, Id slot, Bytes bytes);
  void hold_tape(Id layer, Id slot, Bytes bytes);
  // Uses the state that the caller holds.
  void borrow(Id state);
  // Holds a copy of a state that is still borrowed, because the caller wants it back.
  void copy_if_borrowed(Id state);
  // Drops what is held or borrowed.
  struct Dropped {
    Bytes bytes = 0;          // 0 if it is neither
    bool remembered = false;  // it is stored in another form
  };
  Dropped drop(Id state);
  void drop_tape(Id layer);
  // Returns the slot of a state that is held and from now on the caller's.
  [[nodiscard]] Id give_away(Id state);
  // Says that the slot of a state, which had so many bytes, has another one now.
  Dropped replaced(Id state, Bytes bytes);
  // Says that the slot of a state has the next one now, and that for a moment there were both. Returns whether the
  // state is stored in another form.
  bool moved_on(Id state, Id slot, Bytes before, Bytes after);
  // The same for several layers that run one after the other, in two parts: the bytes of each, and at last which state
  // it is that is held now.
  void count_moved_on(Bytes before, Bytes after) {
    add_bytes(after);
    subtract_bytes(before);
    statistics.peak_remembered = std::max(statistics.peak_remembered, statistics.remembered + 1);
  }
  void moved_on_to(Id state, Id now);
  // Drops all states and tapes but the first state and those saved by hand. What is in tiers is not counted as
  // remembered any more.
  void drop_all_but_input();

  // ---- by hand ----

  // Saves a state, as it is in this slot or, if that is `nowhere`, in a tier.
  void save(Id state, Id slot);
  [[nodiscard]] bool has_saved() const { return !saved_.empty(); }
  [[nodiscard]] bool has_saved(Id state) const { return saved_.contains(state); }
  [[nodiscard]] std::size_t saved_count() const { return saved_.size(); }
  [[nodiscard]] std::vector<Id> saved() const;  // ascending
  // Returns the slot of a state that is saved as it is, and is in no slot from now on; `nowhere` if it is in a tier.
  [[nodiscard]] Id take_saved(Id state);
  // Holds what was saved by hand as if forward had remembered it. What is in no slot is in a tier.
  void adopt_saved();
  // Returns the slot of a state that is held or saved by hand.
  [[nodiscard]] Id slot_at_hand(Id state) const;

  // ---- the account ----

  // What is stored never passes this; an error comes first. What is beside the account counts as well: see `reserve`.
  void limit(Bytes bytes) { limit_ = bytes; }
  // Throws ChainError with the layer unless so many bytes more may be stored.
  void reserve(Bytes more, Id layer) const {
    if (limit_ != largest_bytes && stored_now() + more > limit_) fail_limit(more, layer);
  }

  [[nodiscard]] bool is_remembered(Id state) const { return by_state_[state].forms > 0; }
  // Count a form of a state in a tier.
  void count_put(Id state) { add_form(state), count_tiers(); }
  void count_get(Id state, bool last);
  // Counts what the tiers have now.
  void count_tiers();
  // Count an array on its way between a state and a tier.
  void count_array(Bytes bytes) { add_bytes(bytes); }
  void discount_array(Bytes bytes) { subtract_bytes(bytes); }
  // What is counted; the fields that do not count bytes or states belong to whoever counts those.
  ChainStatistics statistics;
  // The same, with what the background thread has moved since it was counted.
  [[nodiscard]] ChainStatistics statistics_now() const;

 private:
  struct Held {
    Id slot = nowhere;
    std::uint8_t forms = 0;
    bool operator==(const Held&) const = default;
  };
  struct HeldTape {
    Id slot = nowhere;
    bool operator==(const HeldTape&) const = default;
  };
  void set_slot(Id state, Id slot) {
    by_state_.change(state, [slot](Held& held) { held.slot = slot; });
  }
  void add_bytes(Bytes more);
  void subtract_bytes(Bytes less);
  void add_form(Id state) {
    by_state_.change(state, [this](Held& held) { add_form(held); });
  }
  void add_form(Held&);
  Bytes drop(Held&);
  void remove_form(Id state) {
    by_state_.change(state, [this](Held& held) { remove_form(held); });
  }
  void remove_form(Held& held) {
    if (--held.forms == 0) --statistics.remembered;
  }
  [[nodiscard]] Bytes stored_now() const { return bytes_ + tiers_.memory(); }
  [[noreturn]] void fail_limit(Bytes more, Id layer) const;

  ChainStates& states_;
  const StateTiers& tiers_;
  SparseTable<Held> by_state_;
  SparseTable<HeldTape> tapes_;  // by layer
  std::map<Id, Id> saved_;       // by state: slots
  Bytes bytes_ = 0;              // stored in no place
  Bytes limit_ = largest_bytes;
};

// Only more can be a new peak.
inline void HeldStates::add_bytes(Bytes more) {
  bytes_ += more;
  statistics.stored += more;
  statistics.peak_stored = std::max(statistics.peak_stored, statistics.stored);
}

inline void HeldStates::subtract_bytes(Bytes less) {
  bytes_ -= less;
  statistics.stored -= less;
}

inline void HeldStates::add_form(Held& held) {
  if (held.forms++ > 0) return;
  ++statistics.remembered;
  statistics.peak_remembered = std::max(statistics.peak_remembered, statistics.remembered);
}

inline void HeldStates::hold(Id state, Id slot, Bytes bytes) {
  add_bytes(bytes);
  by_state_.change(state, [&](Held& held) {
    if (held.slot != nowhere) drop(held);  // it was made again, for its tape
    held.slot = slot;
    add_form(held);
  });
}

inline Bytes HeldStates::drop(Held& held) {
  const bool borrowed = held.slot == ChainStates::lent;
  const Bytes bytes = borrowed ? states_.bytes(held.slot) : states_.drop(held.slot);
  if (!borrowed) subtract_bytes(bytes);
  held.slot = nowhere;
  remove_form(held);
  return bytes;
}

inline HeldStates::Dropped HeldStates::drop(Id state) {
  Dropped dropped;
  by_state_.change(state, [&](Held& held) {
    if (held.slot != nowhere) dropped.bytes = drop(held);
    dropped.remembered = held.forms > 0;
  });
  return dropped;
}

inline HeldStates::Dropped HeldStates::replaced(Id state, Bytes bytes) {
  Dropped dropped{bytes, false};
  subtract_bytes(bytes);
  by_state_.change(state, [&](Held& held) {
    held.slot = nowhere;
    remove_form(held);
    dropped.remembered = held.forms > 0;
  });
  return dropped;
}

inline bool HeldStates::moved_on(Id state, Id slot, Bytes before, Bytes after) {
  if (by_state_[state].forms != 1 || !by_state_.move_to_next(state, {slot, 1})) {
    hold(state + 1, slot, after);
    return replaced(state, before).remembered;
  }
  count_moved_on(before, after);
  return false;
}

inline void HeldStates::moved_on_to(Id state, Id now) {
  const Id slot = by_state_[state].slot;
  by_state_.change(state, [this](Held& held) {
    held.slot = nowhere;
    remove_form(held);
  });
  by_state_.change(now, [this, slot](Held& held) {
    if (held.slot != nowhere) drop(held);
    held.slot = slot;
    add_form(held);
  });
}

}  // namespace reprise::internal
