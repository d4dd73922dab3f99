#include "chain/held_states.h"

namespace reprise::internal {

void HeldStates::clear() noexcept {
  states_.clear();
  by_state_.clear();
  tapes_.clear();
  saved_.clear();
  account_.clear();
}

// ---- as they are ----

void HeldStates::hold_tape(Id layer, Id slot, Bytes bytes) {
  account_.add(bytes);
  drop_tape(layer);  // it was made again
  tapes_.set(layer, {slot});
}

void HeldStates::drop_tape(Id layer) {
  const Id slot = tapes_[layer].slot;
  if (slot == nowhere) return;
  tapes_.set(layer, {});
  account_.subtract(states_.drop_tape(slot));
}

void HeldStates::borrow(Id state) {
  by_state_.change(state, [this](Held& held) {
    held.slot = ChainStates::lent;
    add_form(held);
  });
}

void HeldStates::copy_if_borrowed(Id state) {
  if (by_state_[state].slot != ChainStates::lent) return;
  const Id copy = states_.clone(ChainStates::lent);
  set_slot(state, copy);
  account_.add(states_.bytes(copy));
}

Id HeldStates::take(Id state) {
  const Id slot = by_state_[state].slot;
  (void)release_slot(state, states_.bytes(slot));
  return slot;
}

void HeldStates::drop_all_but_input() {
  tapes_.for_each([&](Id layer, const HeldTape&) { drop_tape(layer); });
  account_.statistics.remembered = 0;
  by_state_.for_each([&](Id state, Held held) {
    if (state > 0 && held.slot >= 0) account_.subtract(states_.drop(held.slot));
    if (state > 0) held.slot = nowhere;
    held.forms = static_cast<std::uint8_t>((held.slot != nowhere ? 1 : 0) + (has_saved(state) ? 1 : 0));
    by_state_.set(state, held);
    account_.statistics.remembered += held.forms > 0;
  });
  account_.count_tiers();
}

// ---- by hand ----

void HeldStates::save(Id state, Id slot) {
  if (slot != nowhere) account_.add(states_.bytes(slot));
  const auto [entry, is_new] = saved_.try_emplace(state, slot);
  if (is_new) add_form(state);
  const Id before = is_new ? nowhere : std::exchange(entry->second, slot);
  if (before != nowhere) account_.subtract(states_.drop(before));
  account_.count_tiers();
}

std::vector<Id> HeldStates::saved() const {
  std::vector<Id> result;
  for (const auto& [state, slot] : saved_) result.push_back(state);
  return result;
}

Id HeldStates::take_saved(Id state) {
  const Id slot = std::exchange(saved_.at(state), nowhere);
  if (slot != nowhere) account_.subtract(states_.bytes(slot));
  return slot;
}

void HeldStates::adopt_saved() {
  for (const auto& [state, slot] : saved_) set_slot(state, slot);
  saved_.clear();
}

Id HeldStates::slot_at_hand(Id state) const {
  if (const Id held = slot(state); held != nowhere) return held;
  const auto by_hand = saved_.find(state);
  return by_hand == saved_.end() ? nowhere : by_hand->second;
}

// ---- in any form ----

void HeldStates::count_get(Id state, bool last) {
  if (last) remove_form(state);
  account_.count_tiers();
}

}  // namespace reprise::internal
