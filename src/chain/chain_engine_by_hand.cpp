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

std::optional<StateTier> ChainEngine::tier_by_hand() const {
  if (!setup_.enabled()) return std::nullopt;
  if (by_hand_.on_disk) return StateTier::disk;
  return tiers_.used().codec ? std::optional(StateTier::packed) : std::nullopt;
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
  if (phase_ == Phase::idle && !held_.has_saved()) tiers_.begin(std::nullopt);  // with the settings as they are now
  const std::optional<StateTier> tier = tier_by_hand();
  if (tier == StateTier::disk && (!tiers_.used().disk || tiers_.keeps())) {
    throw ChainError(tiers_.used().disk ? "[chain] save: states saved by hand cannot be on a disk with keep"
                                        : "[chain] save: by_hand().on_disk needs a disk, call disk() first");
  }
  if (tier) {
    states_.encode(slot, [&](const ArrayView& array) { tiers_.put(*tier, saved_key(at), array); });
    held_.save(at, nowhere);
  } else {
    held_.save(at, given.give_away());
  }
  for (const StateTier other : {StateTier::packed, StateTier::disk}) {
    if (other != tier) tiers_.erase(other, saved_key(at));
  }
}

// Before backward: settings may have changed since some were saved.
void ChainEngine::bring_saved_to(std::optional<StateTier> tier) {
  for (const Id state : held_.saved()) {
    TemporaryState slot(states_);
    const Id as_it_is = held_.take_saved(state);
    slot.replace(as_it_is);
    if (tier && as_it_is == nowhere && tiers_.contains(*tier, saved_key(state))) continue;
    if (as_it_is == nowhere) slot.replace(from_tiers(saved_key(state)).value());
    held_.save(state, slot.give_away());
    if (!tier) continue;
    states_.encode(held_.slot_at_hand(state),
                   [&](const ArrayView& array) { tiers_.put(*tier, saved_key(state), array); });
    held_.save(state, nowhere);
  }
}

bool ChainEngine::remembers(Id position) const {
  require_layer(position);
  const Id state = state_after(position);
  return state >= 0 && held_.is_remembered(state);
}

// Returns a state that is in a tier under this key and stays there.
std::optional<Id> ChainEngine::from_tiers(Id key) {
  for (const StateTier tier : {StateTier::packed, StateTier::disk}) {
    if (tiers_.contains(tier, key)) return states_.decode(tiers_.get(tier, key, false));
  }
  return std::nullopt;
}

// Returns a state that is in a tier, put there by the schedule or by hand.
std::optional<Id> ChainEngine::state_from_tiers(Id state) {
  if (const auto got = from_tiers(key_of(state))) return got;
  return held_.has_saved(state) ? from_tiers(saved_key(state)) : std::nullopt;
}

Id ChainEngine::copy(Id position) {
  require_layer(position);
  const Id state = state_after(position);
  if (state < 0) fail(position, "the pass began behind it");
  if (const Id here = held_.slot_at_hand(state); here != nowhere) return states_.clone(here);
  if (const auto got = state_from_tiers(state)) return *got;
  fail(position, "the state after it is not remembered");
}

std::optional<Id> ChainEngine::nearest_remembered(Id state) const {
  for (Id from = state; from >= 0; --from) {
    if (held_.is_remembered(from)) return from;
  }
  if (!keeping()) return std::nullopt;
  const auto behind = kept_.states().upper_bound(first_ + state);
  if (behind == kept_.states().begin()) return std::nullopt;
  return *std::prev(behind) - first_;
}

Id ChainEngine::recompute(Id position) {
  require_layer(position);
  const Id last = state_after(position);
  const auto from = nearest_remembered(last);
  if (!from) fail(position, "neither the state after it nor any before it is remembered");
  if (from == last && last >= 0) return copy(position);
  TemporaryState made(states_);
  Id input = *from >= 0 ? held_.slot_at_hand(*from) : nowhere;
  if (input == nowhere) made.replace(input = state_from_tiers(*from).value());
  for (Id layer = *from; layer < last; ++layer) {
    input = call_forward(layer, input, false).state;
    made.replace(input);
    verification_.made(first_ + layer, states_, input, true);
    ++held_.statistics.replays;
    tell(ChainProgress::Phase::replay, layer);
  }
  return made.give_away();
}

}  // namespace reprise::internal
