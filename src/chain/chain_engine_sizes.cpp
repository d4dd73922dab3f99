// Sizes: measuring them, and what the engine does when they differ from those that a pass was planned for.
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "chain/chain_engine.h"
#include "chain/temporary_state.h"
#include "reprise/trace/error.h"
#include "store/disk.h"

namespace reprise::internal {
namespace {

// Sizes that still differ after so many plans are not sizes.
constexpr int most_plans = 8;

bool counts_gradients(const ChainForm& form) {
  return form.gradient > 0 ||
         std::ranges::any_of(form.layers, [](const ChainLayerForm& layer) { return layer.gradient > 0; });
}

// The chain of the first layers alone.
void cut(ChainForm& form, Id layers) {
  if (layers == form.size()) return;
  form.gradient = form.layers[layers].gradient;
  form.layers.resize(static_cast<std::size_t>(layers));
  for (Tier& tier : form.tiers) tier.entries.resize(static_cast<std::size_t>(layers) + 1);
}

}  // namespace

// ---- measuring ----

void ChainEngine::measure() {
  require_known(true, "measure");
  using Clock = std::chrono::steady_clock;
  const StateTierSettings& tiers = tiers_.next();
  ChainForm measured = equal_layers(layers().size());
  measured.tapes = setup_.tapes();
  measured.input = states_.bytes(ChainStates::lent);
  std::vector<StateTierTerms> packed, disk;
  const auto measure_places = [&](Id state) {
    if (!tiers.codec && !tiers.disk) return;
    states_.encode(state, [&](const ArrayView& array) {
      if (tiers.codec) packed.push_back(tiers.measure(StateTier::packed, array));
      if (tiers.disk) disk.push_back(tiers.measure(StateTier::disk, array));
    });
  };
  TemporaryState made(states_);
  Id state = ChainStates::lent;
  Bytes bytes = measured.input;
  measure_places(state);
  for (Id layer = 0; layer < layers().size(); ++layer) {
    ChainLayerForm& one = measured.layers[layer];
    one.gradient = bytes;
    const auto start = Clock::now();
    const ChainStates::Made next = call_forward(layer - first_, state, measured.tapes);  // all layers, not the part's
    one.forward_cost = std::chrono::duration<double>(Clock::now() - start).count();
    one.backward_cost = 2 * one.forward_cost;
    one.state = bytes = next.bytes;
    made.replace(state = next.state);
    if (next.tape != nowhere) one.tape = states_.drop_tape(next.tape);
    measure_places(state);
  }
  measured.gradient = bytes;
  setup_.measured(std::move(measured), packed, disk, tiers);
}

ChainInput ChainEngine::input_terms(Id input, const StateTierSettings& tiers) const {
  ChainInput terms{states_.bytes(input), states_.bytes(input), 0};
  if (!tiers.codec || !setup_.enabled()) return terms;
  const bool disk_is_limited = tiers.disk && tiers.disk->budget < largest_bytes;
  states_.encode(input, [&](const ArrayView& array) {
    terms.room = tiers.room(array);
    if (disk_is_limited && !setup_.sizes_known()) terms.coded = tiers.measure(StateTier::packed, array).bytes;
  });
  return terms;
}

void ChainEngine::measure_sizes(ChainForm& form, Id input, const StateTierSettings& tiers) {
  const auto measure_places = [&](Id state, Id slot) {
    if (form.tiers.empty()) return;
    states_.encode(slot, [&](const ArrayView& array) {
      auto bytes = static_cast<Bytes>(array.bytes());
      held_.reserve(bytes + tiers.room(array), state);
      if (tiers.codec) bytes = tiers.measure(StateTier::packed, array).bytes;
      if (form.packed) form.tiers[*form.packed].entries[state].bytes = bytes;
      if (form.disk) form.tiers[*form.disk].entries[state].bytes = bytes + Disk::header_bytes;
    });
  };
  TemporaryState made(states_);
  Id slot = input;
  Bytes bytes = states_.bytes(input), counted = 0;
  form.input = bytes;
  measure_places(0, slot);
  for (Id layer = 0; layer < form.size(); ++layer) {
    ChainLayerForm& one = form.layers[layer];
    if (setup_.gradients_assumed()) one.gradient = bytes;
    const ChainStates::Made next = call_forward(layer, slot, form.tapes);
    const Bytes tape = next.tape != nowhere ? states_.drop_tape(next.tape) : 0;
    held_.reserve(next.bytes + tape, layer);
    held_.count_array(next.bytes);
    held_.discount_array(counted);
    one.state = bytes = counted = next.bytes;
    one.tape = tape;
    made.replace(slot = next.state);
    measure_places(layer + 1, slot);
    ++held_.statistics.replays;
    tell(ChainProgress::Phase::replay, layer);
  }
  held_.discount_array(counted);
  if (setup_.gradients_assumed()) form.gradient = bytes;
}

void ChainEngine::leave_room_for_gradients() {
  const std::optional<Bytes> limit = pass_->limit();
  if (!limit) return;
  Bytes gradients = 0;
  const ChainForm& form = *pass_->form();
  if (catching_up_) {
    gradients = form.other;
  } else if (phase_ == Phase::backward && position_ > 0) {
    gradients = form.layers[position_ - 1].gradient +
                (position_ < form.size() ? form.layers[position_].gradient : form.gradient);
  }
  held_.limit(*limit - gradients);
}

// ---- what was made is larger than planned ----

bool ChainEngine::accept(Id layer, const ChainStates::Made& made) {
  const ChainForm& form = *pass_->form();
  const Bytes tape = made.tape != nowhere ? states_.tape_bytes(made.tape) : 0;
  const ChainLayerForm& planned = form.layers[layer];
  if (made.bytes <= planned.state && tape <= planned.tape) {
    held_.reserve(made.bytes + tape, layer);
    return true;
  }
  const bool is_state = made.bytes > planned.state;
  const std::string why =
      fmt::format("the {} layer {} has {} bytes, the plan was made for {}", is_state ? "state after" : "tape of",
                  first_ + layer, is_state ? made.bytes : tape, is_state ? planned.state : planned.tape);
  states_.drop(made.state);
  if (made.tape != nowhere) states_.drop_tape(made.tape);
  ++held_.statistics.replays;
  plan_again(why, form, true);
  return false;
}

void ChainEngine::accept_coded(Id state, StateTier tier, Bytes bytes) {
  const ChainForm& form = *pass_->form();
  const Bytes planned = form.tiers[tier == StateTier::disk ? *form.disk : *form.packed].entries[state].bytes;
  if (bytes <= planned) return;
  plan_again(fmt::format("state {} takes {} bytes {}, the plan was made for {}", first_ + state, bytes,
                         tier == StateTier::disk ? "on disk" : "coded", planned),
             form, true);
}

bool ChainEngine::accept_gradient(Id layer) {
  if (!pass_->limit()) return true;
  ChainForm form = *pass_->form();
  const std::optional<Bytes> bytes = states_.gradient_bytes();
  const Bytes planned = layer + 1 < form.size() ? form.layers[layer + 1].gradient : form.gradient;
  if (!bytes || *bytes <= planned || !counts_gradients(form)) return true;
  // Those to come differ in the same way, as far as anybody knows.
  const double ratio = static_cast<double>(*bytes) / static_cast<double>(std::max<Bytes>(planned, 1));
  cut(form, layer + 1);
  form.gradient = *bytes;
  for (ChainLayerForm& one : form.layers) {
    one.gradient = planned == 0 ? *bytes : static_cast<Bytes>(std::ceil(ratio * static_cast<double>(one.gradient)));
  }
  plan_again(fmt::format("the gradient before layer {} has {} bytes, the plan was made for {}", first_ + layer + 1,
                         *bytes, planned),
             std::move(form), false);
  return false;
}

// What backward has made is there. The layers before it can be planned again; behind the first one nothing is left.
void ChainEngine::accept_made_gradient(Id layer) {
  if (layer > 0) {
    (void)accept_gradient(layer - 1);
  } else if (counts_gradients(*pass_->form())) {
    held_.reserve(states_.gradient_bytes().value_or(0), layer);
  }
}

void ChainEngine::plan_again(const std::string& why, ChainForm form, bool measure) {
  const Bytes limit = *pass_->limit();
  // Gradients cannot be measured ahead; each of them leads to one new plan at most.
  if (measure && ++planned_again_ > most_plans) {
    throw ChainError(
        fmt::format("[chain] {}, and it is not the first time in this pass: the same layer has to make the same sizes "
                    "every time",
                    why));
  }
  held_.drop_all_but_input();
  if (held_.slot(0) == nowhere) {
    const Id input = state_from_tiers(0).value();
    held_.hold(0, input, states_.bytes(input));
  }
  tiers_.clear_for_another_plan();
  held_.drop_all_but_input();  // once more, for the account
  if (phase_ == Phase::forward) held_.statistics.not_stored = 0;

  cut(form, phase_ == Phase::backward ? position_ : form.size());
  const Id input = held_.slot(0);
  const Bytes gradient = form.gradient;
  try {
    if (measure) measure_sizes(form, input, tiers_.used());
    if (phase_ == Phase::backward) form.gradient = form.other = gradient;
    pass_.emplace(setup_.begin_again(first_, std::move(form), tiers_.used(), input_terms(input, tiers_.used())));
  } catch (const Error& error) {
    throw ChainError(fmt::format("[chain] budget is {} bytes: {}. Planned again for the sizes as they are: {}", limit,
                                 why, error.what()));
  }
  tiers_.begin_again(setup_.transit());
  catching_up_ = phase_ == Phase::backward;
  leave_room_for_gradients();
  disk_reads_ = 0;
}

}  // namespace reprise::internal
