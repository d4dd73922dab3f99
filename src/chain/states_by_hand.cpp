#include "chain/states_by_hand.h"

#include <fmt/format.h>

#include <vector>

#include "chain/temporary_state.h"

namespace reprise::internal {
namespace {

[[noreturn]] void fail(Id layer, const char* why) {
  throw ChainError(fmt::format("[chain] layer {}: {}", layer, why));
}

Id key_of(Id state) {
  return StateTiers::saved_key(state);
}

}  // namespace

void StatesByHand::require_layer(Id layer) const {
  const Id size = context_.size();
  if (layer >= 0 && layer < size) return;
  throw ChainError(fmt::format("[chain] there is no layer {}: the chain has {}", layer,
                               size == 0 ? "none" : fmt::format("layers 0..{}", size - 1)));
}

// ---- saving ----

std::optional<StateTier> StatesByHand::tier() const {
  if (!context_.setup.is_enabled()) return std::nullopt;
  if (options_.on_disk) return StateTier::disk;
  return context_.tiers.settings().codec ? std::optional(StateTier::packed) : std::nullopt;
}

void StatesByHand::save(Id state, Id slot) {
  HeldStates& held = context_.held;
  StateTiers& tiers = context_.tiers;
  TemporaryState given(context_.states);
  given.replace(slot);
  const Id at = state - context_.pass.first;
  if (at < 0) {
    throw ChainError(fmt::format("[chain] save: the pass began with layer {}, behind this state", context_.pass.first));
  }
  if (options_.maximum && !held.has_saved(at) && held.saved_count() >= *options_.maximum) {
    throw ChainError(
        fmt::format("[chain] save: {} states are saved by hand, and by_hand().maximum is {}: save one of "
                    "them again, or raise the maximum",
                    held.saved_count(), *options_.maximum));
  }
  // With the settings as they are now.
  if (context_.pass.phase == ChainPass::Phase::idle && !held.has_saved()) tiers.begin(std::nullopt);
  const std::optional<StateTier> tier = this->tier();
  if (tier == StateTier::disk && (!tiers.settings().disk || tiers.is_kept())) {
    throw ChainError(tiers.settings().disk ? "[chain] save: states saved by hand cannot be on a disk with keep"
                                           : "[chain] save: by_hand().on_disk needs a disk, call disk() first");
  }
  if (tier) {
    context_.states.encode(slot, [&](const ArrayView& array) { tiers.put(*tier, key_of(at), array); });
    held.save(at, nowhere);
  } else {
    held.save(at, given.release());
  }
  for (const StateTier other : {StateTier::packed, StateTier::disk}) {
    if (other != tier) tiers.erase(other, key_of(at));
  }
}

void StatesByHand::begin_backward() {
  const std::vector<Id> saved = context_.held.saved();
  const std::optional<StateTier> tier = this->tier();
  bring_all_to(tier);
  context_.pass.actions.emplace(context_.setup.begin_backward(saved, tier, context_.tiers.settings()));
  if (tier) context_.tiers.adopt_saved(saved);
  context_.held.adopt_saved();
}

// Settings may have changed since some of the states were saved.
void StatesByHand::bring_all_to(std::optional<StateTier> tier) {
  HeldStates& held = context_.held;
  StateTiers& tiers = context_.tiers;
  for (const Id state : held.saved()) {
    TemporaryState slot(context_.states);
    const Id as_it_is = held.take_saved(state);
    slot.replace(as_it_is);
    if (tier && as_it_is == nowhere && tiers.contains(*tier, key_of(state))) continue;
    if (as_it_is == nowhere) slot.replace(context_.states.decode(tiers.find(key_of(state)).value()));
    held.save(state, slot.release());
    if (!tier) continue;
    context_.states.encode(held.slot_at_hand(state),
                           [&](const ArrayView& array) { tiers.put(*tier, key_of(state), array); });
    held.save(state, nowhere);
  }
}

// ---- asking ----

bool StatesByHand::is_remembered(Id layer) const {
  require_layer(layer);
  const Id state = context_.pass.state_after(layer);
  return state >= 0 && context_.held.is_remembered(state);
}

std::optional<Id> StatesByHand::from_tiers(Id state) {
  StateTiers& tiers = context_.tiers;
  std::optional<Array> array = tiers.find(context_.pass.first + state);
  if (!array && context_.held.has_saved(state)) array = tiers.find(key_of(state));
  return array ? std::optional(context_.states.decode(*std::move(array))) : std::nullopt;
}

Id StatesByHand::copy(Id layer) {
  require_layer(layer);
  const Id state = context_.pass.state_after(layer);
  if (state < 0) fail(layer, "the pass began behind it");
  if (const Id here = context_.held.slot_at_hand(state); here != nowhere) return context_.states.clone(here);
  if (const auto got = from_tiers(state)) return *got;
  fail(layer, "the state after it is not remembered");
}

std::optional<Id> StatesByHand::nearest_remembered(Id state) const {
  for (Id from = state; from >= 0; --from) {
    if (context_.held.is_remembered(from)) return from;
  }
  const std::optional<Id> kept = keeper_.last_state_up_to(context_.pass.first + state);
  return kept ? std::optional(*kept - context_.pass.first) : std::nullopt;
}

Id StatesByHand::recompute(Id layer) {
  require_layer(layer);
  const Id last = context_.pass.state_after(layer);
  const auto from = nearest_remembered(last);
  if (!from) fail(layer, "neither the state after it nor any before it is remembered");
  if (from == last && last >= 0) return copy(layer);
  TemporaryState made(context_.states);
  Id input = *from >= 0 ? context_.held.slot_at_hand(*from) : nowhere;
  if (input == nowhere) made.replace(input = from_tiers(*from).value());
  for (Id k = *from; k < last; ++k) {
    input = context_.call_forward(k, input, false).state;
    made.replace(input);
    context_.verification.check(context_.pass.first + k, context_.states, input, true);
    ++context_.account.statistics.replays;
    context_.report(ChainProgress::Phase::replay, k);
  }
  return made.release();
}

}  // namespace reprise::internal
