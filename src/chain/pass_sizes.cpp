#include "chain/pass_sizes.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "chain/temporary_state.h"
#include "reprise/trace/error.h"
#include "store/disk.h"

namespace reprise::internal {
namespace {

// Sizes that still differ after this many plans are not the same every time.
constexpr int most_plans = 8;

bool counts_gradients(const ChainForm& form) {
  return form.gradient > 0 ||
         std::ranges::any_of(form.layers, [](const ChainLayerForm& layer) { return layer.gradient > 0; });
}

// Leaves only the first layers.
void cut(ChainForm& form, Id layers) {
  if (layers == form.size()) return;
  form.gradient = form.layers[layers].gradient;
  form.layers.resize(static_cast<std::size_t>(layers));
  for (Tier& tier : form.tiers) tier.entries.resize(static_cast<std::size_t>(layers) + 1);
}

}  // namespace

// ---- measuring ----

void PassSizes::measure_layers() {
  using Clock = std::chrono::steady_clock;
  const StateTierSettings& tiers = tiers_.next_settings();
  ChainForm measured = equal_layers(setup_.layers().size());
  measured.tapes = setup_.has_tapes();
  measured.input = states_.bytes(ChainStates::lent);
  std::vector<StateTierCosts> packed, disk;
  const auto measure_in_tiers = [&](Id state) {
    if (!tiers.codec && !tiers.disk) return;
    states_.encode(state, [&](const ArrayView& array) {
      if (tiers.codec) packed.push_back(tiers.measure(StateTier::packed, array));
      if (tiers.disk) disk.push_back(tiers.measure(StateTier::disk, array));
    });
  };
  TemporaryState made(states_);
  Id state = ChainStates::lent;
  Bytes bytes = measured.input;
  measure_in_tiers(state);
  for (Id layer = 0; layer < measured.size(); ++layer) {
    ChainLayerForm& one = measured.layers[layer];
    one.gradient = bytes;
    ++account_.statistics.forward_calls;
    const auto start = Clock::now();
    const ChainStates::Made next = states_.forward(setup_.layers().number(layer), state, measured.tapes);
    one.forward_cost = std::chrono::duration<double>(Clock::now() - start).count();
    one.backward_cost = 2 * one.forward_cost;
    one.state = bytes = next.bytes;
    made.replace(state = next.state);
    if (next.tape != nowhere) one.tape = states_.drop_tape(next.tape);
    measure_in_tiers(state);
  }
  measured.gradient = bytes;
  setup_.set_measured(std::move(measured), packed, disk, tiers);
}

InputSizes PassSizes::input_sizes(Id input, const StateTierSettings& tiers) const {
  InputSizes sizes{states_.bytes(input), states_.bytes(input), 0};
  if (!tiers.codec || !setup_.is_enabled()) return sizes;
  states_.encode(input, [&](const ArrayView& array) {
    sizes.room = tiers.room(array);
    if (tiers.is_disk_limited() && !setup_.has_sizes()) sizes.coded = tiers.measure(StateTier::packed, array).bytes;
  });
  return sizes;
}

void PassSizes::measure_form(ChainForm& form, Id input, const StateTierSettings& tiers) {
  const auto measure_in_tiers = [&](Id state, Id slot) {
    if (form.tiers.empty()) return;
    states_.encode(slot, [&](const ArrayView& array) {
      auto bytes = static_cast<Bytes>(array.bytes());
      account_.reserve(bytes + tiers.room(array), state);
      if (tiers.codec) bytes = tiers.measure(StateTier::packed, array).bytes;
      if (form.packed) form.tiers[*form.packed].entries[state].bytes = bytes;
      if (form.disk) form.tiers[*form.disk].entries[state].bytes = bytes + Disk::header_bytes;
    });
  };
  TemporaryState made(states_);
  Id slot = input;
  Bytes bytes = states_.bytes(input), counted = 0;
  form.input = bytes;
  measure_in_tiers(0, slot);
  for (Id layer = 0; layer < form.size(); ++layer) {
    ChainLayerForm& one = form.layers[layer];
    if (setup_.are_gradients_assumed()) one.gradient = bytes;
    const ChainStates::Made next = context_.call_forward(layer, slot, form.tapes);
    const Bytes tape = next.tape != nowhere ? states_.drop_tape(next.tape) : 0;
    account_.reserve(next.bytes + tape, layer);
    account_.add(next.bytes);
    account_.subtract(counted);
    one.state = bytes = counted = next.bytes;
    one.tape = tape;
    made.replace(slot = next.state);
    measure_in_tiers(layer + 1, slot);
    ++account_.statistics.replays;
    context_.report(ChainProgress::Phase::replay, layer);
  }
  account_.subtract(counted);
  if (setup_.are_gradients_assumed()) form.gradient = bytes;
}

void PassSizes::measure_if_larger(Id input, const StateTierSettings& tiers) {
  const Bytes bytes = states_.bytes(input);
  if (bytes > setup_.limit()) {
    throw ChainError(fmt::format("[chain] budget is {} bytes: the input alone has {}", setup_.limit(), bytes));
  }
  if (bytes <= setup_.form().input) return;
  ChainForm form = setup_.form();
  account_.set_limit(setup_.limit());
  if (input != ChainStates::lent) account_.add(bytes);
  measure_form(form, input, tiers);
  if (input != ChainStates::lent) account_.subtract(bytes);
  setup_.set_measured_again(std::move(form));
}

void PassSizes::begin_part() {
  measured_again_ = 0;
  update_limit();
}

void PassSizes::update_limit() {
  const std::optional<Bytes> limit = actions().limit();
  if (!limit) return;
  Bytes gradients = 0;
  const ChainForm& form = *actions().form();
  if (pass_.is_catching_up) {
    gradients = form.other;
  } else if (pass_.is_backward() && pass_.position > 0) {
    gradients = form.layers[pass_.position - 1].gradient +
                (pass_.position < form.size() ? form.layers[pass_.position].gradient : form.gradient);
  }
  account_.set_limit(*limit - gradients);
}

// ---- what was made is larger than planned ----

bool PassSizes::accept(Id layer, const ChainStates::Made& made) {
  const ChainForm& form = *actions().form();
  const Bytes tape = made.tape != nowhere ? states_.tape_bytes(made.tape) : 0;
  const ChainLayerForm& planned = form.layers[layer];
  if (made.bytes <= planned.state && tape <= planned.tape) {
    account_.reserve(made.bytes + tape, layer);
    return true;
  }
  const bool is_state = made.bytes > planned.state;
  const std::string why =
      fmt::format("the {} layer {} has {} bytes, the plan was made for {}", is_state ? "state after" : "tape of",
                  pass_.first + layer, is_state ? made.bytes : tape, is_state ? planned.state : planned.tape);
  states_.drop(made.state);
  if (made.tape != nowhere) states_.drop_tape(made.tape);
  ++account_.statistics.replays;
  plan_again(why, form, true);
  return false;
}

void PassSizes::accept_in_tier(Id state, StateTier tier, Bytes bytes) {
  const ChainForm& form = *actions().form();
  const Bytes planned = form.tiers[tier == StateTier::disk ? *form.disk : *form.packed].entries[state].bytes;
  if (bytes <= planned) return;
  plan_again(fmt::format("state {} takes {} bytes {}, the plan was made for {}", pass_.first + state, bytes,
                         tier == StateTier::disk ? "on disk" : "coded", planned),
             form, true);
}

bool PassSizes::accept_gradient(Id layer) {
  if (!actions().limit()) return true;
  ChainForm form = *actions().form();
  const std::optional<Bytes> bytes = states_.gradient_bytes();
  const Bytes planned = layer + 1 < form.size() ? form.layers[layer + 1].gradient : form.gradient;
  if (!bytes || *bytes <= planned || !counts_gradients(form)) return true;
  // Those to come differ in the same way, as far as is known.
  const double ratio = static_cast<double>(*bytes) / static_cast<double>(std::max<Bytes>(planned, 1));
  cut(form, layer + 1);
  form.gradient = *bytes;
  for (ChainLayerForm& one : form.layers) {
    one.gradient = planned == 0 ? *bytes : static_cast<Bytes>(std::ceil(ratio * static_cast<double>(one.gradient)));
  }
  plan_again(fmt::format("the gradient before layer {} has {} bytes, the plan was made for {}", pass_.first + layer + 1,
                         *bytes, planned),
             std::move(form), false);
  return false;
}

// The layers before this one can be planned again. After the first layer nothing is left to plan.
void PassSizes::accept_made_gradient(Id layer) {
  if (layer > 0) {
    (void)accept_gradient(layer - 1);
  } else if (counts_gradients(*actions().form())) {
    account_.reserve(states_.gradient_bytes().value_or(0), layer);
  }
}

void PassSizes::plan_again(const std::string& why, ChainForm form, bool measure) {
  const Bytes limit = *actions().limit();
  // Gradients cannot be measured ahead; each of them leads to one new plan at most.
  if (measure && ++measured_again_ > most_plans) {
    throw ChainError(
        fmt::format("[chain] {}, and it is not the first time in this pass: the same layer has to make the same sizes "
                    "every time",
                    why));
  }
  restore_input();
  if (pass_.is_forward()) account_.statistics.not_stored = 0;
  cut(form, pass_.is_backward() ? pass_.position : form.size());
  const Id input = context_.held.slot(0);
  const Bytes gradient = form.gradient;
  try {
    if (measure) measure_form(form, input, tiers_.settings());
    if (pass_.is_backward()) form.gradient = form.other = gradient;
    const StateTierSettings& tiers = tiers_.settings();
    pass_.actions.emplace(setup_.begin_again(pass_.first, std::move(form), tiers, input_sizes(input, tiers)));
  } catch (const Error& error) {
    throw ChainError(fmt::format("[chain] budget is {} bytes: {}. Planned again for the sizes as they are: {}", limit,
                                 why, error.what()));
  }
  tiers_.begin_again(setup_.transit());
  pass_.is_catching_up = pass_.is_backward();
  update_limit();
}

// Holds the input of the part and nothing else.
void PassSizes::restore_input() {
  HeldStates& held = context_.held;
  held.drop_all_but_input();
  if (held.slot(0) == nowhere) {
    const Id input = states_.decode(tiers_.find(pass_.first).value());
    held.hold(0, input, states_.bytes(input));
  }
  tiers_.clear_for_another_plan();
  held.drop_all_but_input();  // once more, for the account
}

}  // namespace reprise::internal
