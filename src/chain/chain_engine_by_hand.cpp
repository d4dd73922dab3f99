// What the engine does besides a pass, without disturbing one that is open: states by hand.
#include <fmt/format.h>

#include "chain/chain_engine.h"
#include "chain/temporary_state.h"

namespace reprise::internal {
namespace {

[[noreturn]] void fail(Id position, const char* why) {
  throw ChainError(fmt::format("[chain] layer {}: {}", position, why));
}

}  // namespace

// ---- states by hand ----

std::optional<Place> ChainEngine::place_by_hand() const {
  if (!setup_.enabled()) return std::nullopt;
  if (by_hand_.on_disk) return Place::disk;
  return places_.used().codec ? std::optional(Place::packed) : std::nullopt;
}

void ChainEngine::save(Id state, Id slot) {
  TemporaryState given(states_);
  given.replace(slot);
  const Id at = state - (phase_ == Phase::idle ? 0 : first_);
  if (at < 0) throw ChainError(fmt::format("[chain] save: the pass began with layer {}, behind this state", first_));
  if (by_hand_.maximum && !held_.has_saved(at) && held_.saved_count() >= *by_hand_.maximum) {
    throw ChainError(
        fmt::format("[chain] save: {} states are saved by hand, and by_hand().maximum is {}: save one of "
                    "them again, or raise the maximum",
                    held_.saved_count(), *by_hand_.maximum));
  }
  if (phase_ == Phase::idle && !held_.has_saved()) places_.begin(std::nullopt);  // with the settings as they are now
  const std::optional<Place> place = place_by_hand();
  if (place == Place::disk && (!places_.used().disk || places_.keeps())) {
    throw ChainError(places_.used().disk ? "[chain] save: states saved by hand cannot be on a disk with keep"
                                         : "[chain] save: by_hand().on_disk needs a disk, call disk() first");
  }
  if (place) {
    states_.encode(slot, [&](const ArrayView& array) { places_.put(*place, saved_key(at), array); });
    held_.save(at, nowhere);
  } else {
    held_.save(at, given.give_away());
  }
  for (const Place other : {Place::packed, Place::disk}) {
    if (other != place) places_.erase(other, saved_key(at));
  }
}

// Before backward: settings may have changed since some were saved.
void ChainEngine::bring_saved_to(std::optional<Place> place) {
  for (const Id state : held_.saved()) {
    TemporaryState slot(states_);
    const Id as_it_is = held_.take_saved(state);
    slot.replace(as_it_is);
    if (place && as_it_is == nowhere && places_.contains(*place, saved_key(state))) continue;
    if (as_it_is == nowhere) slot.replace(from_places(saved_key(state)).value());
    held_.save(state, slot.give_away());
    if (!place) continue;
    states_.encode(held_.slot_at_hand(state),
                   [&](const ArrayView& array) { places_.put(*place, saved_key(state), array); });
    held_.save(state, nowhere);
  }
}

bool ChainEngine::remembers(Id position) const {
  require_layer(position);
  const Id state = state_after(position);
  return state >= 0 && held_.is_remembered(state);
}

// Returns a state that is in a place under this key and stays there.
std::optional<Id> ChainEngine::from_places(Id key) {
  for (const Place place : {Place::packed, Place::disk}) {
    if (places_.contains(place, key)) return states_.decode(places_.get(place, key, false));
  }
  return std::nullopt;
}

// Returns a state that is in a place, put there by the schedule or by hand.
std::optional<Id> ChainEngine::state_from_places(Id state) {
  if (const auto got = from_places(key_of(state))) return got;
  return held_.has_saved(state) ? from_places(saved_key(state)) : std::nullopt;
}

Id ChainEngine::copy(Id position) {
  require_layer(position);
  const Id state = state_after(position);
  if (state < 0) fail(position, "the pass began behind it");
  if (const Id here = held_.slot_at_hand(state); here != nowhere) return states_.clone(here);
  if (const auto got = state_from_places(state)) return *got;
  fail(position, "the state after it is not remembered");
}

Id ChainEngine::recompute(Id position) {
  require_layer(position);
  const Id last = state_after(position);
  Id from = last;
  while (from >= 0 && !held_.is_remembered(from)) --from;
  if (from < 0) fail(position, "neither the state after it nor any before it is remembered");
  if (from == last) return copy(position);
  TemporaryState made(states_);
  Id input = held_.slot_at_hand(from);
  if (input == nowhere) made.replace(input = state_from_places(from).value());
  for (Id layer = from; layer < last; ++layer) {
    input = call_forward(layer, input, false).state;
    made.replace(input);
    verification_.made(first_ + layer, states_, input, true);
    ++held_.statistics.replays;
    tell(ChainProgress::Phase::replay, layer);
  }
  return made.give_away();
}

}  // namespace reprise::internal
