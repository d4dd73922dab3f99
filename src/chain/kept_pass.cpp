#include "chain/kept_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "store/disk.h"
#include "store/kept_value.h"
#include "store/store_state.h"

namespace reprise::internal {
namespace {

constexpr std::uint64_t format = 2;  // 1: numbers of Python in a state were texts

std::array<std::uint64_t, 7> numbers_of(const PassRecord& record) {
  return {format, record.layers, record.numbers, record.first, record.fingerprint, record.input, record.input_bytes};
}

// Returns the number that a key is. Empty if the key is another text.
std::optional<Id> number_in(std::string_view key) {
  Id number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size() || number < 0) return std::nullopt;
  return number;
}

// Returns the numbers of a value. Empty if the value is not an array of `count` numbers.
std::optional<std::vector<std::uint64_t>> numbers_in(StoreState& store, const std::string& key, std::size_t count) {
  const auto value = store.describe(key);
  if (!value || value->element != Element::uint64 || value->shape != Shape{static_cast<std::int64_t>(count)}) {
    return std::nullopt;
  }
  return store.find(key, StoreState::Then::keep)->to_vector<std::uint64_t>();
}

Bytes file_of_numbers(std::size_t count, const char* key) {
  return static_cast<Bytes>(count * sizeof(std::uint64_t)) + Disk::header_bytes +
         kept_description_bytes(key, 1, reprise::codec("exact").name());
}

// Enters the states and gradients that are there. Returns false if there is no pass.
bool sort_keys(const StoreState& store, const std::string& folder, KeptPass::Found& found) {
  bool has_record = false;
  for (const std::string& key : store.keys()) {
    constexpr std::string_view gradient = "gradient ";
    const std::string_view text = key;
    const bool is_gradient = text.starts_with(gradient);
    const auto number = number_in(is_gradient ? text.substr(gradient.size()) : text);
    if (number) {
      (is_gradient ? found.gradients : found.states).insert(*number);
    } else if (key == "pass") {
      has_record = true;
    } else if (key != "result" && key != "seed") {
      throw ChainError(
          fmt::format("[chain] {} has a value \"{}\", which no chain has written: use another folder", folder, key));
    }
  }
  return has_record;
}

PassRecord record_in(StoreState& store, const std::string& folder) {
  const auto record = numbers_in(store, "pass", numbers_of({}).size());
  if (!record || (*record)[0] != format) {
    throw ChainError(
        fmt::format("[chain] the pass in {} was kept by another version of Reprise: clear() removes it", folder));
  }
  const auto& numbers = *record;
  const PassRecord result{numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]};
  const std::string first = std::to_string(result.first);
  if (const auto input = store.describe(first);
      input && static_cast<std::uint64_t>(input->plain_bytes) != result.input_bytes) {
    throw ChainError(
        fmt::format("[chain] state {} in {} has {} bytes, and the input of the pass {}: clear() removes it", first,
                    folder, input->plain_bytes, result.input_bytes));
  }
  return result;
}

}  // namespace

Bytes KeptPass::record_bytes() {
  return file_of_numbers(numbers_of({}).size(), "pass");
}

Bytes KeptPass::seed_bytes() {
  return file_of_numbers(1, "seed");
}

std::optional<KeptPass::Found> KeptPass::find() const {
  const DiskTier& tier = *tiers_.next_settings().disk;
  StoreState store(
      {.memory = 0, .disk = tier, .codec = tiers_.next_settings().codec, .files = tiers_.next_settings().files});
  const std::string folder = (tier.folder / "reprise-kept").string();
  Found found;
  if (!sort_keys(store, folder, found)) return std::nullopt;
  for (const std::string& key : store.keys()) store.check(key);  // says what is damaged
  found.record = record_in(store, folder);
  found.result = store.contains("result");
  if (store.contains("seed")) {
    const auto seed = numbers_in(store, "seed", 1);
    if (!seed) throw ChainError(fmt::format("[chain] the seed in {} is not one number: clear() removes it", folder));
    found.seed = seed->front();
  }
  if (found.result && found.seed && !found.gradients.empty()) found.gradient = *found.gradients.begin();
  return found;
}

void KeptPass::begin(const PassRecord& record, const ArrayView& input, bool is_limited) {
  store_ = &tiers_.kept_store(tiers_.settings().usual_transit(input), is_limited);
  clear();
  const auto numbers = numbers_of(record);
  put("pass", numbers);
  store_->wait();
}

void KeptPass::resume(Found found, const ArrayView& input, bool is_limited) {
  store_ = &tiers_.kept_store(tiers_.settings().usual_transit(input), is_limited);
  states_ = std::move(found.states);
  bytes_ = 0;
  for (const std::string& key : store_->keys()) bytes_ += file_bytes(key);
  gradients_.clear();
  if (found.gradient) gradients_.assign(found.gradients.rbegin(), found.gradients.rend());
  // Gradients without a result were written before it, and are of no use.
  if (!found.gradient) std::ranges::for_each(found.gradients, [this](Id state) { erase(gradient_key(state)); });
  remove_unneeded();
}

// What has no room on disk is an error now: it would stay in memory, and be lost with the process. States and gradients
// may be on disk that are not needed any more as soon as the last gradient is safe, so that is waited for first; and
// again, because what is removed then may be the room that the next gradient was waiting for.
void KeptPass::put(const Key& key, const ArrayView& array, const Codec* codec) {
  while (!put_now(key, array, codec)) {
    const Bytes before = bytes_;
    finish();
    if (bytes_ >= before) {
      throw ChainError(fmt::format(
          "[chain] disk.budget is {} bytes, of which {} are taken: {} of {} bytes does not fit. Raise it, or let the "
          "schedule remember fewer states",
          tiers_.settings().disk->budget, bytes_, number_in(key.text) ? "state " + key.text : key.text, array.bytes()));
    }
  }
  store_->offload({&key, 1});
}

bool KeptPass::put_now(const Key& key, const ArrayView& array, const Codec* codec) {
  const Bytes before = store_->contains(key) ? file_bytes(key) : 0;
  try {
    const PutOptions options{.codec = codec ? codec : &reprise::codec("exact")};
    if (store_->put(key, array, options) != PutResult::stored) return false;
  } catch (const DoesNotFit&) {
    return false;
  }
  bytes_ += file_bytes(key) - before;
  if (bytes_ <= tiers_.settings().disk->budget) return true;
  erase(key);
  return false;
}

void KeptPass::erase(const Key& key) {
  bytes_ -= file_bytes(key);
  store_->erase(key);
}

Bytes KeptPass::file_bytes(const Key& key) const {
  const Description value = store_->describe(key);
  return value.bytes + Disk::header_bytes + kept_description_bytes(key.text, value.shape.size(), value.codec);
}

void KeptPass::put_state(Id state, const ArrayView& array) {
  if (states_.contains(state)) return;
  put(state, array, tiers_.settings().codec);
  states_.insert(state);
  remove_unneeded();
}

void KeptPass::put_seed(std::uint64_t fingerprint) {
  put("seed", std::span<const std::uint64_t>(&fingerprint, 1));
}

void KeptPass::put_gradient(Id state, const ArrayView& array) {
  put(gradient_key(state), array, tiers_.settings().codec);
  gradients_.push_back(state);
  remove_unneeded();
}

// A value is safe if it is on disk. Gradients get there one after the other.
void KeptPass::remove_unneeded() {
  while (gradients_.size() > 1 && store_->describe(gradient_key(gradients_[1])).tier == TierKind::disk) {
    erase(gradient_key(gradients_.front()));
    gradients_.erase(gradients_.begin());
  }
  if (gradients_.empty() || store_->describe(gradient_key(gradients_.front())).tier != TierKind::disk) return;
  for (auto at = states_.lower_bound(gradients_.front()); at != states_.end(); at = states_.erase(at)) erase(*at);
}

// A gradient that found no room when it was its turn is written now, if there is any.
void KeptPass::finish() {
  store_->wait();
  for (const Id state : gradients_) {
    const Key key = gradient_key(state);
    if (store_->describe(key).tier != TierKind::disk) store_->offload({&key, 1});
  }
  store_->wait();
  remove_unneeded();
}

void KeptPass::clear() {
  try {
    Store& store = tiers_.kept_store(0, false);
    store.erase("pass");  // first: without it the rest is nothing, should this be the end of the process
    store.clear();
  } catch (const DiskError&) {  // what is damaged, or made by a codec that is not here, can still be removed
    tiers_.remove_kept();
  }
  states_.clear();
  gradients_.clear();
  bytes_ = 0;
}

}  // namespace reprise::internal
