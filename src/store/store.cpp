#include "reprise/store/store.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "store/comma_list.h"
#include "store/store_state.h"

namespace reprise {
using namespace internal;
namespace {

std::string not_stored(const Key& key, const StoreState& state) {
  return fmt::format("[store] no value \"{}\"{}", key.text, state.why_not(key.text));
}

}  // namespace

Store::Store(StoreOptions options) : state_(std::make_unique<StoreState>(std::move(options))) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

PutResult Store::put(const Key& key, const ArrayView& array, PutOptions options) {
  return state_->put(key.text, array, options);
}

Array Store::get(const Key& key) {
  auto array = state_->find(key.text, StoreState::Then::keep);
  if (!array) throw NotStored(not_stored(key, *state_));
  return std::move(*array);
}

Array Store::take(const Key& key) {
  auto array = state_->find(key.text, StoreState::Then::remove);
  if (!array) throw NotStored(not_stored(key, *state_));
  return std::move(*array);
}

std::optional<Array> Store::find(const Key& key) {
  return state_->find(key.text, StoreState::Then::keep);
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
std::vector<std::string> Store::keys() const {
  return state_->keys();
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
  if (!description) throw NotStored(not_stored(key, *state_));
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
StoreOptions Store::options() const {
  return state_->options();
}

// ---- as text ----

const char* name(PutResult result) {
  switch (result) {
    case PutResult::stored: return "stored";
    case PutResult::not_remembered: return "not remembered";
    case PutResult::refused: return "refused";
  }
  return "unknown";
}

std::ostream& operator<<(std::ostream& out, const Description& d) {
  return out << fmt::format("put {}: {} of {} ({} bytes, {} as {}), cost {:g}, in {}", d.number, name(d.element),
                            fmt::format("[{}]", comma_list(d.shape)), d.plain_bytes, d.bytes, d.codec, d.cost,
                            d.tier == TierKind::disk ? "a file" : "memory");
}

std::ostream& operator<<(std::ostream& out, const StoreStatistics& s) {
  const auto line = [&](const char* what, auto number) { out << fmt::format("{:16} {}\n", what, number); };
  line("stored ever", s.stored_ever);
  line("in memory", s.in_memory);
  line("on disk", s.on_disk);
  line("puts", s.puts);
  line("gets", s.gets);
  line("hits", s.hits);
  line("misses", s.misses);
  line("evictions", s.evictions);
  line("dropped", s.dropped);
  line("moves to disk", s.moves_to_disk);
  line("moves to memory", s.moves_to_memory);
  line("not remembered", s.not_remembered);
  line("refused", s.refused);
  line("kept exactly", s.kept_exactly);
  line("bytes", s.bytes);
  line("peak bytes", s.peak_bytes);
  line("disk bytes", s.disk_bytes);
  line("peak disk bytes", s.peak_disk_bytes);
  line("before coding", s.before_coding);
  line("after coding", s.after_coding);
  return out;
}

}  // namespace reprise
