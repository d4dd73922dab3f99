#include "torch/values/device_fingerprints.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/recipes/fingerprint.h"

namespace reprise::internal {

void DeviceFingerprints::read_later(c10::Storage contents, const std::optional<c10::Stream>& made_on) {
  held_.push_back({std::move(contents), made_on, {}});
  read_held();
}

void DeviceFingerprints::read_when_free() {
  Arbiter::after([self = shared_from_this()] { self->read(); });
  will_read_ = true;
}

void DeviceFingerprints::end() {
  bindings_ = nullptr;
  Arbiter::discard_all(std::move(held_));
  held_.clear();
}

// Returns those who wait for what the storage holds, and want a fingerprint.
std::vector<SavedTensor*> DeviceFingerprints::waiting_for(c10::StorageImpl* storage) const {
  std::vector<SavedTensor*> all;
  const Id value = bindings_ ? bindings_->find(storage) : no_value;
  if (value == no_value) return all;
  for (SavedTensor* const saved : pending_.of(value)) {
    if (saved->fingerprint.empty() && saved->unmoved()) all.push_back(saved);
  }
  return all;
}

std::vector<DeviceFingerprints::Unread> DeviceFingerprints::take() {
  const bool captures =
      std::any_of(devices_.begin(), devices_.end(), [](const auto& one) { return one.device->is_capturing(); });
  std::vector<Unread> all;
  const Arbiter lock;
  will_read_ = false;
  if (!bindings_ || captures) return all;
  for (Unread& one : std::exchange(held_, {})) {
    for (const SavedTensor* const saved : waiting_for(one.contents.unsafeGetStorageImpl())) {
      if (std::find(one.views.begin(), one.views.end(), saved->view) == one.views.end())
        one.views.push_back(saved->view);
    }
    if (one.views.empty()) {
      Arbiter::discard(std::move(one.contents));
    } else {
      all.push_back(std::move(one));
    }
  }
  return all;
}

void DeviceFingerprints::read() {
  std::exception_ptr first;
  for (const Unread& unread : take()) {
    try {
      read(unread);
    } catch (...) {  // perhaps only once: those who ask for the values get it
      if (!first) first = std::current_exception();
      const Arbiter lock;
      for (SavedTensor* const saved : waiting_for(unread.contents.unsafeGetStorageImpl())) {
        saved->unread = std::current_exception();
      }
    }
  }
  if (first) std::rethrow_exception(first);
}

void DeviceFingerprints::read(const Unread& unread) {
  libtorch::use_here(unread.contents, unread.made_on);
  for (const View& view : unread.views) {
    const Fingerprint seen = fingerprint(unread.contents, view);
    const Arbiter lock;
    for (SavedTensor* const saved : waiting_for(unread.contents.unsafeGetStorageImpl())) {
      if (saved->view == view) saved->fingerprint = seen;
    }
  }
}

void expect_no_failure(const c10::Storage& storage) {
  if (!storage || storage.device_type() == c10::DeviceType::CPU) return;
  const c10::impl::VirtualGuardImpl device(storage.device_type());
  device.synchronizeStream(device.getStream(storage.device()));
}

}  // namespace reprise::internal
