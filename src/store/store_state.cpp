#include "store/store_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "store/kept_value.h"

namespace reprise::internal {
namespace {

std::vector<std::string> texts(std::span<const Key> keys) {
  std::vector<std::string> texts;
  texts.reserve(keys.size());
  for (const Key& key : keys) texts.push_back(key.text);
  return texts;
}

std::shared_ptr<const Remember> checked(Remember rule) {
  if (!rule) throw BadOption("[store] option remember is empty");
  return std::make_shared<const Remember>(std::move(rule));
}

StoreOptions checked(StoreOptions options) {
  const auto check_budget = [](const char* option, Bytes budget) {
    if (budget < 0) throw BadOption(fmt::format("[store] option {} is {}, below zero", option, budget));
  };
  check_budget("memory", options.memory);
  if (options.disk) check_budget("disk.budget", options.disk->budget);
  if (options.disk && options.disk->folder.empty()) {
    throw BadOption("[store] option disk.folder is empty: name a folder that exists, \".\" for the current one");
  }
  return options;
}

}  // namespace

StoreState::StoreState(StoreOptions options)
    : options_(checked(std::move(options))),
      exact_(&reprise::codec("exact")),
      tiers_{StoreTier(options_.memory), StoreTier(options_.disk ? options_.disk->budget : 0)},
      disk_(options_.disk ? std::make_unique<Disk>(options_.files ? *options_.files : FileSystem::machine(),
                                                   options_.disk->folder, options_.disk->keep)
                          : nullptr),
      remember_(checked(options_.remember)),
      background_(tier(TierKind::memory).ledger) {
  if (disk_ && disk_->keeps()) find_kept_values();
}

StoreState::~StoreState() {
  if (disk_ && disk_->keeps()) write_out();
}

// Called by the constructor: no other thread knows this store yet.
void StoreState::find_kept_values() {
  try {
    for (const Disk::Found& found : disk_->found()) {
      const Reference value = kept_value(found.description, found.coded_bytes, found.path, options_.codec);
      auto room = tier(TierKind::disk).ledger.try_reserve(file_bytes(*value, value->bytes));
      if (!room) {
        throw DiskError(fmt::format("[store] option disk.budget is {}: what was kept needs more, from {} on",
                                    options_.disk->budget, found.path.string()));
      }
      value->score = score_of(options_.evict, value->cost, value->bytes);
      value->file = disk_->adopt(found, std::move(*room));
      value->file->room.mark_at_rest();
      next_number_ = std::max(next_number_, value->number + 1);
      Reference& place = values_[value->key];
      if (place) retire(*place);  // the file found later is newer; its process ended before it had removed the other
      place = value;
      tier(TierKind::disk).at_rest.insert(value.get());
      ++tier(TierKind::disk).count;
    }
  } catch (...) {
    disk_->leave_files();  // they are not ours to remove
    throw;
  }
}

// Moves what is in memory to the disk that keeps it, as far as that succeeds. The child of a fork leaves it to its
// parent.
void StoreState::write_out() {
  if (disk_->ours()) {
    std::vector<std::string> in_memory;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [key, value] : values_) {
        if (value->buffer) in_memory.push_back(key);
      }
    }
    for (const std::string& key : in_memory) {
      try {
        offload_now(key);
      } catch (const std::exception&) {  // it is lost, as everything in memory is
      }
    }
  }
  disk_->leave_files();
}

bool StoreState::erase(const std::string& key) {
  Reference old;
  const std::lock_guard lock(mutex_);
  absences_.remove(key);
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  old = remove(found);
  return true;
}

void StoreState::clear() {
  background_.cancel_all();
  Values all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(values_);
    for (const auto& [key, value] : all) retire(*value);
    absences_.clear();
  }
  all.clear();
  if (!disk_) return;
  try {
    disk_->remove_leftovers("");
  } catch (const DiskError&) {  // they stay counted, and are tried again
  }
}

void StoreState::prefetch(std::span<const Key> keys) {
  if (!disk_) return;
  for (const std::string& key : texts(keys)) {
    background_.add_for_room(key, [this, key] { return prefetch_now(key); });
  }
}

void StoreState::offload(std::span<const Key> keys) {
  if (!disk_) return;
  const std::vector<std::string> all = texts(keys);
  for (const std::string& key : all) background_.cancel(key);
  for (const std::string& key : all) background_.add([this, key] { offload_now(key); });
}

bool StoreState::contains(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return values_.contains(key);
}

std::size_t StoreState::size() const {
  const std::lock_guard lock(mutex_);
  return values_.size();
}

std::vector<std::string> StoreState::keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

std::optional<Description> StoreState::describe(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  const StoredValue& value = *found->second;
  return Description{.number = value.number,
                     .bytes = value.bytes,
                     .plain_bytes = value.plain_bytes,
                     .cost = value.cost,
                     .tier = value.tier(),
                     .codec = std::string(value.codec->name()),
                     .element = value.element,
                     .shape = value.shape};
}

StoreStatistics StoreState::statistics() const {
  const std::lock_guard lock(mutex_);
  StoreStatistics statistics = counts_;
  statistics.gets = statistics.hits + statistics.misses;
  statistics.in_memory = tier(TierKind::memory).count;
  statistics.on_disk = tier(TierKind::disk).count;
  statistics.bytes = ledger(TierKind::memory).held();
  statistics.peak_bytes = ledger(TierKind::memory).peak();
  statistics.disk_bytes = ledger(TierKind::disk).held();
  statistics.peak_disk_bytes = ledger(TierKind::disk).peak();
  return statistics;
}

void StoreState::reset_statistics() {
  const std::lock_guard lock(mutex_);
  counts_ = {};
  for (StoreTier& tier : tiers_) tier.ledger.reset_peak();
}

void StoreState::enabled(bool on) {
  const std::lock_guard lock(mutex_);
  enabled_ = on;
}

bool StoreState::enabled() const {
  const std::lock_guard lock(mutex_);
  return enabled_;
}

void StoreState::remember(Remember rule) {
  auto shared = checked(std::move(rule));  // the one from before ends with it, after the lock
  const std::lock_guard lock(mutex_);
  remember_.swap(shared);
}

StoreOptions StoreState::options() const {
  StoreOptions options = options_;
  const std::lock_guard lock(mutex_);
  options.remember = *remember_;
  return options;
}

std::string StoreState::why_not(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return absences_.text(key);
}

// ---- fork -----------------------------------------------------------------------------------------------------------

void StoreState::before_fork() {
  background_.before_fork();
  mutex_.lock();
  if (disk_) disk_->before_fork();
  for (StoreTier& tier : tiers_) tier.ledger.before_fork();
}

void StoreState::after_fork_in_parent() {
  for (StoreTier& tier : tiers_) tier.ledger.after_fork_in_parent();
  if (disk_) disk_->after_fork_in_parent();
  mutex_.unlock();
  background_.after_fork_in_parent();
}

void StoreState::after_fork_in_child() {
  if (disk_) disk_->after_fork_in_child();
  Bytes at_rest[2] = {0, 0};
  for (auto& [key, value] : values_) {
    take_from_other_threads(value);
    if (value->buffer) {
      value->buffer->room.mark_at_rest_after_fork();
      at_rest[static_cast<int>(TierKind::memory)] += value->buffer->room.bytes();
    }
    if (value->file) {
      value->file->room.mark_at_rest_after_fork();
      at_rest[static_cast<int>(TierKind::disk)] += value->file->room.bytes();
    }
  }
  for (int i = 0; i < 2; ++i) tiers_[i].ledger.after_fork_in_child(at_rest[i]);
  // Not destroyed before: its destructor would wait for threads that are not here.
  new (&moved_) std::condition_variable;
  mutex_.unlock();
  background_.after_fork_in_child();
}

// References of threads that are not here would never end, so those threads keep empty objects.
void StoreState::take_from_other_threads(Reference& value) {
  auto& at_rest = tier(value->tier()).at_rest;
  at_rest.erase(value.get());
  if (value.use_count() > 1) value = std::make_shared<StoredValue>(std::move(*value));
  if (value->buffer.use_count() > 1) value->buffer = std::make_shared<Buffer>(std::move(*value->buffer));
  if (value->file.use_count() > 1) value->file = std::make_shared<DiskFile>(std::move(*value->file));
  value->readers = 0;
  value->awaited = value->moving = false;
  at_rest.insert(value.get());
}

}  // namespace reprise::internal
