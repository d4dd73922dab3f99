#include "torch/evict/device_fingerprints.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "torch/memory/arbiter.h"
#include "torch/recipes/fingerprint.h"
#include "torch/values/recordings.h"

namespace reprise::internal {
namespace {

struct Unread {
  c10::Storage contents;
  std::optional<c10::Stream> made_on;
  std::vector<View> views;
};

// Those who wait for what the storage holds, and want a fingerprint.
std::vector<SavedTensor*> waiting_for(Recording& r, c10::StorageImpl* storage) {
  std::vector<SavedTensor*> all;
  const Id value = r.values().bindings().find(storage);
  if (value == no_value) return all;
  for (SavedTensor* const saved : r.values().pending().of(value)) {
    if (saved->fingerprint.empty() && saved->unmoved()) all.push_back(saved);
  }
  return all;
}

std::vector<Unread> take_unread(Recording& r) {
  std::vector<Unread> all;
  const Arbiter lock;
  Values& values = r.values();
  for (c10::Storage& contents : values.take_unread()) {
    c10::StorageImpl* const storage = contents.unsafeGetStorageImpl();
    const Id value = values.bindings().find(storage);
    if (value == no_value) {
      Arbiter::discard(std::move(contents));
      continue;
    }
    std::vector<View> views;
    for (const SavedTensor* const saved : waiting_for(r, storage)) {
      if (std::find(views.begin(), views.end(), saved->view) == views.end()) views.push_back(saved->view);
    }
    all.push_back({std::move(contents), values.made_on(value), std::move(views)});
  }
  return all;
}

void read(Recording& r, const Unread& unread) {
  libtorch::use_here(unread.contents, unread.made_on);
  for (const View& view : unread.views) {
    const Fingerprint seen = fingerprint(unread.contents, view);
    const Arbiter lock;
    for (SavedTensor* const saved : waiting_for(r, unread.contents.unsafeGetStorageImpl())) {
      if (saved->view == view) saved->fingerprint = seen;
    }
  }
}

// Returns what was thrown first. Waiting for a device throws what went wrong there, and perhaps only once: those who
// ask for the values get it.
std::exception_ptr read_all(Recording& r) {
  if (!r.context().accelerator() || r.context().is_capturing()) return nullptr;
  std::exception_ptr first;
  for (const Unread& unread : take_unread(r)) {
    try {
      read(r, unread);
    } catch (...) {
      if (!first) first = std::current_exception();
      const Arbiter lock;
      for (SavedTensor* const saved : waiting_for(r, unread.contents.unsafeGetStorageImpl())) {
        saved->unread = std::current_exception();
      }
    }
  }
  return first;
}

}  // namespace

void read_fingerprints(Recording& r) {
  (void)read_all(r);
}

void expect_no_failure(const c10::Storage& storage) {
  if (!storage || storage.device_type() == c10::DeviceType::CPU) return;
  const c10::impl::VirtualGuardImpl device(storage.device_type());
  device.synchronizeStream(device.getStream(storage.device()));
}

void read_fingerprints(const Meter& meter) {
  if (&meter == &meter::cpu()) return;
  std::vector<std::shared_ptr<Recording>> recordings;
  {
    const Arbiter lock;
    for (Recording* const one : Recordings::of_process().all()) {
      if (one->context().device_of(meter) == untracked) continue;
      if (auto recording = one->weak_from_this().lock()) recordings.push_back(std::move(recording));  // else it ends
    }
  }
  std::exception_ptr first;
  for (const auto& recording : recordings) {
    if (const auto thrown = read_all(*recording); !first) first = thrown;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace reprise::internal
