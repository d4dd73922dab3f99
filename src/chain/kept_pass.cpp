#include "chain/kept_pass.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

namespace reprise::internal {
namespace {

constexpr std::uint64_t format = 1;

std::array<std::uint64_t, 7> numbers_of(const PassRecord& record) {
  return {format, record.layers, record.numbers, record.first, record.fingerprint, record.input, record.input_bytes};
}

// The number that a key is; none if it is another text.
std::optional<Id> number_in(std::string_view key) {
  Id number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<KeptPass::Found> KeptPass::look() const {
  const DiskTier& tier = *places_.next().disk;
  Store store({.memory = 0, .disk = tier, .files = places_.next().files});
  const std::string folder = (tier.folder / "reprise-kept").string();
  Found found;
  for (const std::string& key : store.keys()) {
    constexpr std::string_view gradient = "gradient ";
    const std::string_view text = key;
    const bool of_gradient = text.starts_with(gradient);
    const auto number = number_in(of_gradient ? text.substr(gradient.size()) : text);
    if (number && of_gradient) {
      if (!found.gradient || *number < *found.gradient) found.gradient = *number;
    } else if (number) {
      found.states.insert(*number);
    } else if (key != "pass" && key != "result" && key != "seed") {
      throw ChainError(
          fmt::format("[chain] {} has a value \"{}\", which is no chain's: use another folder", folder, key));
    }
  }
  if (!store.contains("pass")) return std::nullopt;
  for (const std::string& key : store.keys()) (void)store.get(key);  // says what is damaged

  const std::vector<std::uint64_t> record = store.get("pass").to_vector<std::uint64_t>();
  if (record.size() != numbers_of({}).size() || record[0] != format) {
    throw ChainError(fmt::format("[chain] the pass in {} was kept by another version of Reprise", folder));
  }
  found.record = {record[1], record[2], record[3], record[4], record[5], record[6]};
  found.result = store.contains("result");
  if (store.contains("seed")) found.seed = store.get("seed").as<std::uint64_t>()[0];
  if (!found.result || !found.seed) found.gradient.reset();
  return found;
}

void KeptPass::begin(const PassRecord& record) {
  store_ = &places_.kept_store(static_cast<Bytes>(record.input_bytes));
  clear();
  const auto numbers = numbers_of(record);
  put("pass", numbers);
  store_->wait();
}

void KeptPass::go_on(Found found, bool limited) {
  store_ = &places_.kept_store(limited ? 0 : static_cast<Bytes>(found.record.input_bytes));
  states_ = std::move(found.states);
  gradients_.clear();
  if (found.gradient) gradients_.push_back(*found.gradient);
}

void KeptPass::put(const Key& key, const ArrayView& array) {
  if (store_->put(key, array, PutOptions{.codec = places_.used().codec}) != PutResult::stored) {
    throw ChainError(fmt::format("[chain] {} of {} bytes found no place on the disk", key.text, array.bytes()));
  }
  store_->offload({&key, 1});
}

void KeptPass::put_state(Id state, const ArrayView& array) {
  if (states_.contains(state)) return;
  put(state, array);
  states_.insert(state);
  remove_what_is_not_needed();
}

void KeptPass::put_seed(std::uint64_t fingerprint) {
  put("seed", std::span<const std::uint64_t>(&fingerprint, 1));
}

void KeptPass::put_gradient(Id state, const ArrayView& array) {
  put(gradient_key(state), array);
  gradients_.push_back(state);
  remove_what_is_not_needed();
}

// A value is safe if it is on disk. Gradients get there one after the other.
void KeptPass::remove_what_is_not_needed() {
  while (gradients_.size() > 1 && store_->describe(gradient_key(gradients_[1])).tier == TierKind::disk) {
    store_->erase(gradient_key(gradients_.front()));
    gradients_.erase(gradients_.begin());
  }
  if (gradients_.empty() || store_->describe(gradient_key(gradients_.front())).tier != TierKind::disk) return;
  for (auto at = states_.lower_bound(gradients_.front()); at != states_.end(); at = states_.erase(at))
    store_->erase(*at);
}

void KeptPass::finish() {
  store_->wait();
  remove_what_is_not_needed();
}

void KeptPass::clear() {
  Store& store = places_.kept_store(0);
  store.erase("pass");  // first: without it the rest is nothing, should this be the end of the process
  store.clear();
  states_.clear();
  gradients_.clear();
}

}  // namespace reprise::internal
