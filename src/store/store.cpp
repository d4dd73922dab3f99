#include "reprise/store/store.h"

#include <fmt/format.h>

#include <utility>

#include "store/store_state.h"

namespace reprise {
using namespace internal;
namespace {

std::string not_stored(const Key& key) {
  return fmt::format("[store] no value \"{}\"", key.text);
}

}  // namespace

Store::Store(StoreOptions options) : state_(std::make_unique<StoreState>(std::move(options))) {}
Store::~Store() = default;

PutResult Store::put(const Key& key, const ArrayView& array, PutOptions options) {
  return state_->put(key.text, array, options);
}

Array Store::get(const Key& key) {
  auto array = state_->find(key.text, false);
  if (!array) throw NotStored(not_stored(key));
  return std::move(*array);
}

Array Store::take(const Key& key) {
  auto array = state_->find(key.text, true);
  if (!array) throw NotStored(not_stored(key));
  return std::move(*array);
}

std::optional<Array> Store::find(const Key& key) {
  return state_->find(key.text, false);
}
bool Store::erase(const Key& key) {
  return state_->erase(key.text);
}
void Store::clear() {
  state_->clear();
}

void Store::prefetch(std::span<const Key> keys) {
  state_->prefetch(keys);
}
void Store::offload(std::span<const Key> keys) {
  state_->offload(keys);
}
void Store::wait() {
  state_->wait();
}

bool Store::contains(const Key& key) const {
  return state_->contains(key.text);
}
std::size_t Store::size() const {
  return state_->size();
}
Bytes Store::bytes(TierKind tier) const {
  return state_->ledger(tier).used();
}
Bytes Store::budget(TierKind tier) const {
  return state_->ledger(tier).budget();
}

double Store::utilisation(TierKind tier) const {
  const Bytes all = budget(tier);
  return all == 0 ? 0 : static_cast<double>(bytes(tier)) / static_cast<double>(all);
}

Description Store::describe(const Key& key) const {
  auto description = state_->describe(key.text);
  if (!description) throw NotStored(not_stored(key));
  return std::move(*description);
}

StoreStatistics Store::statistics() const {
  return state_->statistics();
}
void Store::reset_statistics() {
  state_->reset_statistics();
}
void Store::enabled(bool on) {
  state_->enabled(on);
}
bool Store::enabled() const {
  return state_->enabled();
}
void Store::remember(Remember rule) {
  state_->remember(std::move(rule));
}

}  // namespace reprise
