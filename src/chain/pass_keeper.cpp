#include "chain/pass_keeper.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "chain/kept_room.h"
#include "store/disk.h"
#include "store/kept_value.h"

namespace reprise::internal {

// ---- between two passes ----

PassRecord PassKeeper::record_of(Id input) const {
  PassRecord record;
  record.layers = static_cast<std::uint64_t>(context_.layers().size());
  std::vector<int> numbers;
  for (Id layer = 0; layer < context_.layers().size(); ++layer) numbers.push_back(context_.layers().number(layer));
  record.numbers = XXH3_64bits(numbers.data(), numbers.size() * sizeof(int));
  record.first = static_cast<std::uint64_t>(pass_.start);
  record.fingerprint = fingerprint_;
  if (input == nowhere) return record;
  states_.encode(input, [&](const ArrayView& array) {
    record.input = fingerprint_of(array);
    record.input_bytes = array.bytes();
  });
  return record;
}

void PassKeeper::require_can_keep() const {
  if (const Codec* codec = tiers_.next_settings().codec; codec && !codec->exact()) {
    throw ChainError(
        fmt::format("[chain] keep needs a codec that gives back every bit, and {} does not: a pass that goes "
                    "on would end with other bits",
                    codec->name()));
  }
  if (folder_is_ours_ || found_ || !kept_.find()) return;
  throw ChainError(fmt::format("[chain] {} has a pass that was kept: resume() goes on with it, clear() removes it",
                               (tiers_.next_settings().disk->folder / "reprise-kept").string()));
}

ChainResume PassKeeper::find(std::uint64_t fingerprint) {
  found_.reset();
  fingerprint_ = fingerprint;
  auto found = kept_.find();
  folder_is_ours_ = true;
  if (!found) return {};

  const PassRecord mine = record_of(nowhere), &its = found->record;
  const std::string folder = (tiers_.next_settings().disk->folder / "reprise-kept").string();
  const auto refuse = [&](const std::string& why) {
    folder_is_ours_ = false;
    throw ChainError(
        fmt::format("[chain] the pass in {} is one of another chain: {}. clear() removes it", folder, why));
  };
  if (its.layers != mine.layers) refuse(fmt::format("it has {} layers, this one {}", its.layers, mine.layers));
  if (its.numbers != mine.numbers) refuse("its layers have other numbers");
  if (its.fingerprint != mine.fingerprint) {
    refuse(fmt::format("its fingerprint is {}, not {}", its.fingerprint, mine.fingerprint));
  }
  // The input is the first thing that is written after the record: without it nothing was done.
  if (found->states.empty() && !found->result) return {};
  const Id first = static_cast<Id>(its.first), count = context_.layers().size();
  const Id last = found->gradient.value_or(count);
  const Id last_state = std::max(first, count - 1);  // if there are no layers, the input
  if (first > count || last > count || (!found->states.empty() && *found->states.rbegin() > last_state) ||
      (last > first && !found->states.contains(first))) {
    refuse("its states are not those of such a pass");
  }
  ChainResume result{true, found->result ? count : *found->states.rbegin(), std::nullopt};
  if (found->result && found->seed) result.backward = last - first;
  found_ = std::move(found);
  return result;
}

void PassKeeper::disk_changed() {
  folder_is_ours_ = false;
  found_.reset();
}

void PassKeeper::clear() {
  found_.reset();
  if (!tiers_.is_next_kept()) return;
  tiers_.begin(std::nullopt);
  kept_.clear();
  tiers_.close_kept();
  folder_is_ours_ = true;
}

// ---- keeping ----

void PassKeeper::begin(Id input) {
  const PassRecord record = record_of(input);
  states_.encode(input, [&](const ArrayView& array) {
    kept_.begin(record, array, pass_.actions->limit().has_value());
    is_on_ = folder_is_ours_ = true;
    kept_.put_state(pass_.start, array);
  });
  kept_.finish();  // everything else can be made again from the input
}

// Parts that run once more, and what is left of a pass that was resumed, have plans of their own, which may remember
// more than the pass would have. That need not be kept: after another crash, it is done again.
void PassKeeper::require_room(Id input) {
  has_room_for_more_ = true;
  if (!tiers_.settings().is_disk_limited()) return;
  if (is_on_) kept_.finish();  // what is not needed any more is gone then
  has_room_for_more_ = !pass_.has_run_before;
  const Bytes budget = tiers_.settings().disk->budget;
  Bytes most = most_bytes_of_part(input);
  if (most > budget && has_room_for_more_ && is_on_) {
    has_room_for_more_ = false;
    most = most_bytes_of_part(input);
  }
  if (most <= budget) return;
  throw BadOption(fmt::format(
      "[chain] disk.budget is {} bytes, and what is kept of the pass needs {}: the states that the schedule "
      "remembers, the result and a gradient. Raise it, or let the schedule remember fewer states",
      budget, most));
}

// States of unknown sizes are taken to be as large as the input. Gradients are as large as their states.
Bytes PassKeeper::most_bytes_of_part(Id input) const {
  const StateTierSettings& tiers = tiers_.settings();
  const ChainForm form = context_.form();
  const InputSizes input_sizes = sizes_.input_sizes(input, tiers);
  std::size_t dimensions = 0;
  Bytes around = 0;  // a state, in its array
  states_.encode(input, [&](const ArrayView& array) {
    dimensions = array.shape().size();
    around = static_cast<Bytes>(array.bytes()) - states_.bytes(input);
  });
  const bool codes = tiers.codec && !pass_.actions->limit();  // see KeptPass::begin
  const std::string_view name = codes ? tiers.codec->name() : reprise::codec("exact").name();
  const auto coded = [&](Id state) {
    if (!setup_.has_sizes()) return input_sizes.coded;
    if (tiers.codec && !codes) return form.state_bytes(state) + around;
    return form.disk ? form.tiers[*form.disk].entries[state].bytes - Disk::header_bytes : form.state_bytes(state);
  };
  const auto file = [&](Bytes bytes, const std::string& key) {
    return bytes + Disk::header_bytes + kept_description_bytes(key, dimensions, name);
  };
  KeptSizes of;
  of.forward_cost = [&](Id layer) { return setup_.forward_cost(pass_.first + layer); };
  of.state = [&](Id state) { return file(coded(state), std::to_string(pass_.first + state)); };
  of.gradient = [&](Id state) {
    return states_.is_gradient_codable() ? file(coded(state), KeptPass::gradient_key(pass_.first + state)) : 0;
  };
  of.keeps_remembered = is_keeping_remembered();
  of.before = is_on_ ? kept_.bytes() : KeptPass::record_bytes();
  if (is_on_) {
    for (const Id state : kept_.states()) {
      if (state >= pass_.first) of.there.insert(state - pass_.first);
    }
  }
  if (!pass_.has_run_before) of.at_turn = file(coded(form.size()), "result") + KeptPass::seed_bytes();
  return most_kept_bytes(pass_.actions->from_the_start(), std::move(of));
}

void PassKeeper::keep_put(Id state, StateTier tier, const ArrayView& array) {
  if (tier == StateTier::disk || is_keeping_remembered()) kept_.put_state(pass_.first + state, array);
}

// Called when everything has been done with a state that forward does with it.
void PassKeeper::keep_if_remembered(Id state) {
  const Id slot = is_keeping_remembered() ? context_.held.slot(state) : nowhere;
  if (slot == nowhere || kept_.states().contains(pass_.first + state)) return;
  states_.encode(slot, [&](const ArrayView& array) { kept_.put_state(pass_.first + state, array); });
  context_.account.count_tiers();
}

void PassKeeper::keep_result() {
  if (pass_.has_run_before || pass_.result == nowhere) return;
  states_.encode(pass_.result, [&](const ArrayView& array) { kept_.put_result(array); });
  context_.account.count_tiers();
}

void PassKeeper::keep_seed() {
  if (!states_.is_gradient_codable()) return;
  std::uint64_t seed = 0;
  states_.encode_gradient([&](const ArrayView& array) { seed = fingerprint_of(array); });
  if (found_ && found_->seed && *found_->seed != seed) {
    throw ChainError("[chain] backward begins with another gradient than the pass that is resumed: clear() removes it");
  }
  if (!found_ || !found_->seed) kept_.put_seed(seed);
  if (found_ && found_->gradient) decode_gradient(*found_->gradient);
  found_.reset();
}

void PassKeeper::keep_gradient(Id state) {
  if (!states_.is_gradient_codable() || !kept_.states().contains(state)) return;
  states_.encode_gradient([&](const ArrayView& array) { kept_.put_gradient(state, array); });
  context_.account.count_tiers();
}

// ---- resuming ----

bool PassKeeper::resume(Id input) {
  const PassRecord mine = record_of(input), &its = found_->record;
  if (mine.first != its.first || mine.input != its.input || mine.input_bytes != its.input_bytes) {
    if (!found_->is_over()) {
      const bool length = mine.input_bytes != its.input_bytes;
      throw ChainError(fmt::format(
          "[chain] forward begins with {} than the pass that is resumed{}: clear() removes it",
          mine.first != its.first ? "another layer" : "another input",
          length ? fmt::format(" ({} bytes, there {})", mine.input_bytes, its.input_bytes) : std::string()));
    }
    found_.reset();
    return false;
  }
  tiers_.begin(std::nullopt);
  input_ = its.input;
  has_known_sizes_ = setup_.has_sizes() && setup_.form().state_bytes(pass_.start) == states_.bytes(input);
  states_.encode(input, [&](const ArrayView& array) { kept_.resume(*found_, array, setup_.needs_sizes()); });
  is_on_ = true;
  // Of a pass that is over the folder has no state any more.
  if (found_->is_over()) {
    context_.held.hold(0, input, states_.bytes(input));
  } else {
    states_.drop(input);
  }
  return true;
}

std::optional<Id> PassKeeper::backward_end() const {
  return found_->result ? std::optional(found_->gradient.value_or(context_.layers().size())) : std::nullopt;
}

std::optional<Id> PassKeeper::last_state_up_to(Id state) const {
  if (!is_on_) return std::nullopt;
  const auto after = kept_.states().upper_bound(state);
  return after == kept_.states().begin() ? std::nullopt : std::optional(*std::prev(after));
}

// Reads an array that was kept. One may be larger than its state, as that of a std::vector<bool> is, but not out of all
// proportion.
Array PassKeeper::read(Id state, const Key& key) {
  if (has_known_sizes_) {
    const Bytes bytes = kept_.array_bytes(key), known = setup_.form().state_bytes(state);
    if (bytes / 64 > known + 4096) {
      refuse(key, fmt::format("it has {} bytes, and by the sizes that were set or measured {}", bytes, known));
    }
  }
  return kept_.get(key);
}

Id PassKeeper::decode(Id state, const Key& key) {
  Array array = read(state, key);
  last_decoded_ = {state, fingerprint_as_compared(array)};
  if (state == pass_.start && fingerprint_of(array) != input_) refuse(key, "it is not the input of the pass");
  Id slot = nowhere;
  try {
    slot = states_.decode(std::move(array));
  } catch (const Error& error) {
    refuse(key, error.what());
  }
  if (!has_known_sizes_) return slot;
  const Bytes bytes = states_.bytes(slot), known = setup_.form().state_bytes(state);
  if (bytes == known) return slot;
  states_.drop(slot);
  refuse(key, fmt::format("it has {} bytes, and by the sizes that were set or measured {}", bytes, known));
}

// A gradient is taken to be about as large as its state. Whether backward can take it is for its type to say.
void PassKeeper::decode_gradient(Id state) {
  const Key key = KeptPass::gradient_key(state);
  Array array = read(state, key);
  try {
    states_.decode_gradient(std::move(array));
  } catch (const Error& error) {
    refuse(key, error.what());
  }
}

// Without verification forward need not give the same bits every time, but the shape is always the same.
std::uint64_t PassKeeper::fingerprint_as_compared(const ArrayView& array) const {
  if (context_.verify() != Verify::never) return fingerprint_of(array);
  return fingerprint_of_shape(array);
}

void PassKeeper::refuse(const Key& key, const std::string& why) const {
  throw ChainError(fmt::format("[chain] the value \"{}\" in {} is not one of this pass: {}. clear() removes the pass",
                               key.text, (tiers_.settings().disk->folder / "reprise-kept").string(), why));
}

void PassKeeper::require_same(const Decoded& decoded, Id slot, Id from) {
  std::uint64_t again = 0;
  states_.encode(slot, [&](const ArrayView& array) { again = fingerprint_as_compared(array); });
  if (again == decoded.fingerprint) return;
  kept_.clear();  // what was kept since then was made of that state
  throw ChainError(fmt::format(
      "[chain] state {} as it was kept is not what forward makes of state {}, so the pass was removed. Were its files "
      "changed, or does forward not give the same result every time? verify(Verify::never) compares shapes only",
      decoded.state, from));
}

}  // namespace reprise::internal
