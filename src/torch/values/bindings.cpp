#include "torch/values/bindings.h"

#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/values/recordings.h"

namespace reprise::internal {
namespace {

void set_tag(meter::Header& header, std::uint32_t recording, Id value, bool tracked) {
  header.tag = {recording, value};
  if (tracked) {
    meter::track(header);
  } else {
    meter::untrack(header);
  }
}

libtorch::WeakStorage refer_to(c10::StorageImpl* storage) {
  c10::raw::weak_intrusive_ptr::incref(storage);
  return libtorch::WeakStorage::reclaim(storage);
}

// Drops a handle that was only looked at. It may be the last one by now, and free memory of any owner, unless the meter
// has it.
void drop(c10::intrusive_ptr<c10::StorageImpl> storage) {
  if (!meter::header_of(*storage)) Arbiter::discard(c10::Storage(std::move(storage)));
}

}  // namespace

void Bindings::clear() {
  for (const Binding& binding : all_) {
    if (binding.storage.expired()) continue;
    auto storage = binding.storage.lock();
    if (!storage) continue;
    meter::Header* const header = meter::header_of(*storage);
    if (header && header->tag.recording == number_) set_tag(*header, 0, 0, false);
    drop(std::move(storage));
  }
  all_.clear();
  elsewhere_.clear();
}

Id Bindings::find_elsewhere(c10::StorageImpl* storage) const {
  const auto found = elsewhere_.find(storage);
  if (found == elsewhere_.end()) return no_value;
  // While the value refers to the storage, no other one can have its address.
  return all_[found->second].storage._unsafe_get_target() == storage ? found->second : no_value;
}

void Bindings::bind(c10::StorageImpl* storage, Id value, bool tracked) {
  Binding& binding = all_[value];
  if (c10::StorageImpl* const last = binding.storage._unsafe_get_target(); last != storage && !elsewhere_.empty()) {
    if (const auto device = elsewhere_.find(last); device != elsewhere_.end() && device->second == value) {
      elsewhere_.erase(device);  // another storage may get its address
    }
  }
  binding.storage = refer_to(storage);
  meter::Header* const header = meter::header_of(*storage);
  if (!header) {
    elsewhere_[storage] = value;
    return;
  }
  if (header->tag.recording != 0 && header->tag.recording != number_) {
    Bindings* const theirs = Recordings::of_process().bindings_of(header->tag.recording);
    if (theirs) theirs->elsewhere_[storage] = header->tag.value;  // it still has to find it
  }
  set_tag(*header, number_, value, tracked);
}

void Bindings::unbind(c10::StorageImpl* storage) {
  meter::Header* const header = meter::header_of(*storage);
  if (header && header->tag.recording == number_) {
    set_tag(*header, 0, 0, false);
  } else {
    elsewhere_.erase(storage);
  }
}

c10::Storage Bindings::last_storage(Id value) const {
  if (static_cast<std::size_t>(value) >= all_.size()) return {};  // memory it left long ago may still be tagged
  auto storage = all_[value].storage.lock();
  return storage ? c10::Storage(std::move(storage)) : c10::Storage();
}

c10::Storage Bindings::storage(Id value) const {
  auto storage = all_[value].storage.lock();
  if (!storage) return {};
  if (find(storage.get()) == value) return c10::Storage(std::move(storage));
  drop(std::move(storage));
  return {};
}

bool Bindings::held_by_others(Id value, const c10::Storage& kept) const {
  auto storage = all_[value].storage.lock();
  if (!storage) return false;
  const std::size_t ours = 1 + (kept && kept.unsafeGetStorageImpl() == storage.get() ? 1 : 0);
  const bool held = find(storage.get()) == value && storage.use_count() > ours;
  drop(std::move(storage));
  return held;
}

void Bindings::expect(Id value, const libtorch::Version& version, std::uint32_t expected) {
  all_[value].version = version;
  all_[value].expected_version = expected;
}

void Bindings::expect_present(Id value, const at::Tensor& tensor) {
  const libtorch::Version& version = libtorch::version_of(tensor);
  if (version.enabled()) expect(value, version, version.current_version());
}

void Bindings::renumber(std::size_t from, std::size_t to) {
  const auto renumbered = [&](Id value) {
    return value < static_cast<Id>(from) ? value : static_cast<Id>(static_cast<std::size_t>(value) - from + to);
  };
  const std::size_t count = all_.size() - from;
  for (std::size_t i = 0; i < count; ++i) {
    all_[to + i] = std::move(all_[from + i]);
    auto storage = all_[to + i].storage.lock();
    if (!storage) continue;
    meter::Header* const header = meter::header_of(*storage);
    if (header && header->tag.recording == number_) header->tag.value = renumbered(header->tag.value);
    drop(std::move(storage));
  }
  for (auto& [storage, value] : elsewhere_) value = renumbered(value);
  all_.resize(to + count);
}

}  // namespace reprise::internal
