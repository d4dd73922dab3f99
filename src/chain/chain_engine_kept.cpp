// What the engine keeps on disk of a pass, and how it goes on with one that was kept.
#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "chain/chain_engine.h"
#include "chain/kept_room.h"
#include "chain/temporary_state.h"
#include "store/disk.h"
#include "store/kept_value.h"

namespace reprise::internal {

// ---- keeping ----

PassRecord ChainEngine::record_of(Id input) const {
  PassRecord record;
  record.layers = static_cast<std::uint64_t>(layers().size());
  std::vector<int> numbers;
  for (Id layer = 0; layer < layers().size(); ++layer) numbers.push_back(layers().number(layer));
  record.numbers = XXH3_64bits(numbers.data(), numbers.size() * sizeof(int));
  record.first = static_cast<std::uint64_t>(start_);
  record.fingerprint = fingerprint_;
  if (input == nowhere) return record;
  states_.encode(input, [&](const ArrayView& array) {
    record.input = fingerprint_of(array);
    record.input_bytes = array.bytes();
  });
  return record;
}

void ChainEngine::require_keeping() const {
  if (const Codec* codec = tiers_.next().codec; codec && !codec->exact()) {
    throw ChainError(
        fmt::format("[chain] keep needs a codec that gives back every bit, and {} does not: a pass that goes "
                    "on would end with other bits",
                    codec->name()));
  }
  if (folder_is_ours_ || resumed_ || !kept_.look()) return;
  throw ChainError(fmt::format("[chain] {} has a pass that was kept: resume() goes on with it, clear() forgets it",
                               (tiers_.next().disk->folder / "reprise-kept").string()));
}

void ChainEngine::begin_kept(Id input) {
  const PassRecord record = record_of(input);
  states_.encode(input, [&](const ArrayView& array) {
    kept_.begin(record, array, pass_->limit().has_value());
    kept_on_ = folder_is_ours_ = true;
    kept_.put_state(start_, array);
  });
  kept_.finish();  // everything else can be made again from the input
}

// Parts that run once more, and what is left of a pass that was resumed, have plans of their own, which may remember
// more than the pass would have. That need not be kept: after another crash, it is done again.
void ChainEngine::require_room_to_keep(Id input) {
  keeps_more_ = true;
  if (!tiers_.disk_is_limited()) return;
  if (keeping()) kept_.finish();  // what is not needed any more is gone then
  keeps_more_ = !ran_before_;
  const Bytes budget = tiers_.used().disk->budget;
  Bytes most = most_kept_of_part(input);
  if (most > budget && keeps_more_ && keeping()) {
    keeps_more_ = false;
    most = most_kept_of_part(input);
  }
  if (most <= budget) return;
  throw BadOption(fmt::format(
      "[chain] disk.budget is {} bytes, and what is kept of the pass needs {}: the states that the schedule "
      "remembers, the result and a gradient. Raise it, or let the schedule remember fewer states",
      budget, most));
}

// If nobody knows better, states are as large as the input. Gradients are as large as their states.
Bytes ChainEngine::most_kept_of_part(Id input) const {
  const StateTierSettings& tiers = tiers_.used();
  const ChainForm form = pass_->form() ? *pass_->form() : form_of_pass();
  const ChainInput terms = input_terms(input, tiers);
  std::size_t dimensions = 0;
  Bytes around = 0;  // a state, in its array
  states_.encode(input, [&](const ArrayView& array) {
    dimensions = array.shape().size();
    around = static_cast<Bytes>(array.bytes()) - states_.bytes(input);
  });
  const bool codes = tiers.codec && !pass_->limit();  // see KeptPass::begin
  const std::string_view name = codes ? tiers.codec->name() : reprise::codec("exact").name();
  const auto coded = [&](Id state) {
    if (!setup_.sizes_known()) return terms.coded;
    if (tiers.codec && !codes) return form.state_bytes(state) + around;
    return form.disk ? form.tiers[*form.disk].entries[state].bytes - Disk::header_bytes : form.state_bytes(state);
  };
  const auto file = [&](Bytes bytes, const std::string& key) {
    return bytes + Disk::header_bytes + kept_description_bytes(key, dimensions, name);
  };
  KeptTerms of;
  of.forward_cost = [&](Id layer) { return setup_.forward_cost(first_ + layer); };
  of.state = [&](Id state) { return file(coded(state), std::to_string(first_ + state)); };
  of.gradient = [&](Id state) {
    return states_.gradient_codable() ? file(coded(state), KeptPass::gradient_key(first_ + state)) : 0;
  };
  of.keeps_remembered = keeps_remembered();
  of.before = keeping() ? kept_.bytes() : KeptPass::record_bytes();
  if (keeping()) {
    for (const Id state : kept_.states()) {
      if (state >= first_) of.there.insert(state - first_);
    }
  }
  if (!ran_before_) of.at_turn = file(coded(form.size()), "result") + KeptPass::seed_bytes();
  return most_kept(pass_->from_the_start(), std::move(of));
}

// Called when everything has been done with a state that forward does with it.
void ChainEngine::keep_if_remembered(Id state) {
  const Id slot = keeps_remembered() ? held_.slot(state) : nowhere;
  if (slot == nowhere || kept_.states().contains(first_ + state)) return;
  states_.encode(slot, [&](const ArrayView& array) { kept_.put_state(first_ + state, array); });
  held_.count_tiers();
}

void ChainEngine::keep_result() {
  if (ran_before_ || result_ == nowhere) return;
  states_.encode(result_, [&](const ArrayView& array) { kept_.put_result(array); });
  held_.count_tiers();
}

void ChainEngine::keep_seed() {
  if (!states_.gradient_codable()) return;
  std::uint64_t seed = 0;
  states_.encode_gradient([&](const ArrayView& array) { seed = fingerprint_of(array); });
  if (resumed_ && resumed_->seed && *resumed_->seed != seed) {
    throw ChainError("[chain] backward begins with another gradient than the pass that is resumed: clear() forgets it");
  }
  if (!resumed_ || !resumed_->seed) kept_.put_seed(seed);
  if (resumed_ && resumed_->gradient) decode_kept_gradient(*resumed_->gradient);
  resumed_.reset();
}

// The gradient is the one with respect to this state.
void ChainEngine::keep_gradient(Id state) {
  if (!states_.gradient_codable() || !kept_.states().contains(state)) return;
  states_.encode_gradient([&](const ArrayView& array) { kept_.put_gradient(state, array); });
  held_.count_tiers();
}

// ---- going on ----

ChainResume ChainEngine::resume(std::uint64_t fingerprint) {
  if (!tiers_.will_keep()) {
    throw ChainError(
        "[chain] resume was asked for, but nothing is kept: call disk({.folder = ..., .keep = true}) first");
  }
  require_known(true, "resume");
  release();
  resumed_.reset();
  fingerprint_ = fingerprint;
  auto found = kept_.look();
  folder_is_ours_ = true;
  if (!found) return {};

  const PassRecord mine = record_of(nowhere), &its = found->record;
  const std::string folder = (tiers_.next().disk->folder / "reprise-kept").string();
  const auto refuse = [&](const std::string& why) {
    folder_is_ours_ = false;
    throw ChainError(
        fmt::format("[chain] the pass in {} is one of another chain: {}. clear() forgets it", folder, why));
  };
  if (its.layers != mine.layers) refuse(fmt::format("it has {} layers, this one {}", its.layers, mine.layers));
  if (its.numbers != mine.numbers) refuse("its layers have other numbers");
  if (its.fingerprint != mine.fingerprint) {
    refuse(fmt::format("its fingerprint is {}, not {}", its.fingerprint, mine.fingerprint));
  }
  // The input is the first thing that is written after the record: without it nothing was done.
  if (found->states.empty() && !found->result) return {};
  const Id first = static_cast<Id>(its.first), count = layers().size();
  const Id last = found->gradient.value_or(count);
  const Id last_state = std::max(first, count - 1);  // if there are no layers, the input
  if (first > count || last > count || (!found->states.empty() && *found->states.rbegin() > last_state) ||
      (last > first && !found->states.contains(first))) {
    refuse("its states are not those of such a pass");
  }
  ChainResume result{true, found->result ? count : *found->states.rbegin(), std::nullopt};
  if (found->result && found->seed) result.backward = last - first;
  resumed_ = std::move(found);
  return result;
}

// A new pass begins instead if the one that was kept is over, and its input was another one.
bool ChainEngine::forward_resumed(Id input) {
  const PassRecord mine = record_of(input), &its = resumed_->record;
  if (mine.first != its.first || mine.input != its.input || mine.input_bytes != its.input_bytes) {
    if (!resumed_->over()) {
      const bool length = mine.input_bytes != its.input_bytes;
      throw ChainError(fmt::format(
          "[chain] forward begins with {} than the pass that is resumed{}: clear() forgets it",
          mine.first != its.first ? "another layer" : "another input",
          length ? fmt::format(" ({} bytes, there {})", mine.input_bytes, its.input_bytes) : std::string()));
    }
    resumed_.reset();
    return false;
  }
  tiers_.begin(std::nullopt);
  kept_input_ = its.input;
  has_known_sizes_ = setup_.sizes_known() && setup_.form().state_bytes(start_) == states_.bytes(input);
  states_.encode(input, [&](const ArrayView& array) { kept_.go_on(*resumed_, array, setup_.needs_sizes()); });
  kept_on_ = true;
  // Of a pass that is over the folder has no state any more.
  if (resumed_->over()) {
    held_.hold(0, input, states_.bytes(input));
  } else {
    states_.drop(input);
  }
  if (resumed_->result) {
    first_ = resumed_->gradient.value_or(layers().size());
    phase_ = Phase::backward;
    verification_.begin(states_, 0, false);
    result_ = decode_kept(layers().size(), "result");
  } else {
    const Id from = *kept_.states().rbegin();
    const Id state = decode_kept(from, from);
    open(state, from, layers().size());
    require_room_to_keep(state);
    forward_part(state);
  }
  return true;
}

// Reads an array that was kept. One may be larger than its state, as that of a std::vector<bool> is, but not out of all
// proportion.
Array ChainEngine::read_kept(Id state, const Key& key) {
  if (has_known_sizes_) {
    const Bytes bytes = kept_.array_bytes(key), known = setup_.form().state_bytes(state);
    if (bytes / 64 > known + 4096) {
      refuse_kept(key, fmt::format("it has {} bytes, and by the sizes that were set or measured {}", bytes, known));
    }
  }
  return kept_.get(key);
}

Id ChainEngine::decode_kept(Id state, const Key& key) {
  Array array = read_kept(state, key);
  read_ = {state, fingerprint_of_kept(array)};
  if (state == start_ && fingerprint_of(array) != kept_input_) refuse_kept(key, "it is not the input of the pass");
  Id slot = nowhere;
  try {
    slot = states_.decode(std::move(array));
  } catch (const Error& error) {
    refuse_kept(key, error.what());
  }
  if (!has_known_sizes_) return slot;
  const Bytes bytes = states_.bytes(slot), known = setup_.form().state_bytes(state);
  if (bytes == known) return slot;
  states_.drop(slot);
  refuse_kept(key, fmt::format("it has {} bytes, and by the sizes that were set or measured {}", bytes, known));
}

// A gradient is taken to be about as large as its state. Whether backward can take it is for its type to say.
void ChainEngine::decode_kept_gradient(Id state) {
  const Key key = KeptPass::gradient_key(state);
  Array array = read_kept(state, key);
  try {
    states_.decode_gradient(std::move(array));
  } catch (const Error& error) {
    refuse_kept(key, error.what());
  }
}

// Without verification forward need not give the same bits every time, but the shape is always the same.
std::uint64_t ChainEngine::fingerprint_of_kept(const ArrayView& array) const {
  if (verify() != Verify::never) return fingerprint_of(array);
  return fingerprint_of_shape(array);
}

void ChainEngine::refuse_kept(const Key& key, const std::string& why) const {
  throw ChainError(fmt::format("[chain] the value \"{}\" in {} is not one of this pass: {}. clear() forgets the pass",
                               key.text, (tiers_.used().disk->folder / "reprise-kept").string(), why));
}

// Forward once more, from the last state that was kept to where backward has come, and turns. Where backward has come
// there was a state that was kept, too, perhaps the one that this process began with: forward has to make the same.
void ChainEngine::run_segment_forward() {
  const Id end = first_, from = *std::prev(kept_.states().lower_bound(end));
  const ReadState kept = read_;
  const Id state = decode_kept(from, from);
  ran_before_ = true;
  open(state, from, end);
  require_room_to_keep(state);
  forward_part(state);
  TemporaryState made(states_);
  const Id slot = std::exchange(result_, nowhere);
  made.replace(slot);
  if (kept.state != end || slot == nowhere) return;
  std::uint64_t again = 0;
  states_.encode(slot, [&](const ArrayView& array) { again = fingerprint_of_kept(array); });
  if (again == kept.fingerprint) return;
  kept_.clear();  // what was kept since then was made of that state
  throw ChainError(fmt::format(
      "[chain] state {} as it was kept is not what forward makes of state {}, so the pass was forgotten. Has somebody "
      "changed its files, or does forward not give the same result every time? verify(Verify::never) compares shapes "
      "only",
      end, from));
}

}  // namespace reprise::internal
