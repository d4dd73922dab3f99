// The states and tapes that a chain holds, and in how many forms it stores each state.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "chain/storage_account.h"
#include "reprise/chain/internal/chain_states.h"
#include "trace/sparse_table.h"

namespace reprise::internal {

// A state may be stored in several forms at a time: held as it is, saved by hand, in tiers. A state is remembered while
// it is stored in any.
class HeldStates {
 public:
  HeldStates(ChainStates& states, StorageAccount& account) : states_(states), account_(account) {}

  // Drops everything, what was saved by hand included, and clears the account. The tiers are empty already.
  void clear() noexcept;

  // ---- as they are ----

  // Returns the slot of a state: `lent` if that is the caller's, `nowhere` if the state is not held.
  [[nodiscard]] Id slot(Id state) const { return by_state_[state].slot; }
  [[nodiscard]] Id tape_slot(Id layer) const { return tapes_[layer].slot; }
  void hold(Id state, Id slot, Bytes bytes);
  void hold_tape(Id layer, Id slot, Bytes bytes);
  // Holds a state in the slot that the caller has lent.
  void borrow(Id state);
  // Replaces a state that is still borrowed by a copy, because its slot goes back to the caller.
  void copy_if_borrowed(Id state);
  // Drops a state that is held or borrowed.
  struct Dropped {
    Bytes bytes = 0;          // 0 if the state is neither
    bool remembered = false;  // true: stored in another form
  };
  Dropped drop(Id state);
  void drop_tape(Id layer);
  // Returns the slot of a state that is held, which is the caller's from now on.
  [[nodiscard]] Id take(Id state);
  // Says that a state of this many bytes has left its slot for another one.
  Dropped release_slot(Id state, Bytes bytes);
  // Says that the slot of a state has the next one now, and that for a moment there were both. Returns true if the
  // state is stored in another form.
  bool move_to_next(Id state, Id slot, Bytes before, Bytes after);
  // Says that the slot of a state has state `now`, after layers that were counted one after the other.
  void move_to(Id state, Id now);
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
  // Takes the slot away from a state that is saved by hand, and returns it. `nowhere` if the state is in a tier.
  [[nodiscard]] Id take_saved(Id state);
  // Holds the states that were saved by hand as if forward had remembered them. Those in no slot are in a tier.
  void adopt_saved();
  // Returns the slot of a state that is held or saved by hand.
  [[nodiscard]] Id slot_at_hand(Id state) const;

  // ---- in any form ----

  [[nodiscard]] bool is_remembered(Id state) const { return by_state_[state].forms > 0; }
  // Count a form of a state in a tier.
  void count_put(Id state) { add_form(state), account_.count_tiers(); }
  void count_get(Id state, bool last);

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
  void add_form(Id state) {
    by_state_.change(state, [this](Held& held) { add_form(held); });
  }
  void add_form(Held& held) {
    if (held.forms++ == 0) account_.add_remembered();
  }
  Bytes drop(Held&);
  void remove_form(Id state) {
    by_state_.change(state, [this](Held& held) { remove_form(held); });
  }
  void remove_form(Held& held) {
    if (--held.forms == 0) account_.remove_remembered();
  }

  ChainStates& states_;
  StorageAccount& account_;
  SparseTable<Held> by_state_;
  SparseTable<HeldTape> tapes_;  // by layer
  std::map<Id, Id> saved_;       // by state: slots
};

inline void HeldStates::hold(Id state, Id slot, Bytes bytes) {
  account_.add(bytes);
  by_state_.change(state, [&](Held& held) {
    if (held.slot != nowhere) drop(held);  // it was made again, for its tape
    held.slot = slot;
    add_form(held);
  });
}

inline Bytes HeldStates::drop(Held& held) {
  const bool borrowed = held.slot == ChainStates::lent;
  const Bytes bytes = borrowed ? states_.bytes(held.slot) : states_.drop(held.slot);
  if (!borrowed) account_.subtract(bytes);
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

inline HeldStates::Dropped HeldStates::release_slot(Id state, Bytes bytes) {
  Dropped dropped{bytes, false};
  account_.subtract(bytes);
  by_state_.change(state, [&](Held& held) {
    held.slot = nowhere;
    remove_form(held);
    dropped.remembered = held.forms > 0;
  });
  return dropped;
}

inline bool HeldStates::move_to_next(Id state, Id slot, Bytes before, Bytes after) {
  if (by_state_[state].forms != 1 || !by_state_.move_to_next(state, {slot, 1})) {
    hold(state + 1, slot, after);
    return release_slot(state, before).remembered;
  }
  account_.replace(before, after);
  return false;
}

inline void HeldStates::move_to(Id state, Id now) {
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
