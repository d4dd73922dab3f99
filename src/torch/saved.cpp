#include "torch/saved.h"

#include <algorithm>

#include "torch/replayer.h"
#include "torch/session_state.h"
#include "torch/thread_state.h"
#include "torch/unwritten.h"

namespace reprise::internal {

void SavedHook::call_pack_hook(const at::Tensor& tensor) {
  if (const libtorch::Version& version = libtorch::version_of(tensor); version.enabled()) {
    version_ = version;
    expected_version_ = version.current_version();
  }
  const ThreadState& here = this_thread();
  if (!here.recording || !libtorch::is_plain(tensor) || !libtorch::storage_of(tensor)->data()) {
    held_ = tensor.tensor_data();
    if (here.session && !tensor.device().is_cpu())
      here.session->met_on_other_device(static_cast<Bytes>(tensor.nbytes()));
    return;
  }
  const Arbiter lock;
  recording_ = here.recording;
  view = View(tensor);
  c10::StorageImpl* const storage = libtorch::storage_of(tensor);
  if (recording_->current != no_operator) {
    const auto& writes = recording_->current_writes;
    const bool written = std::any_of(writes.begin(), writes.end(), [&](const auto& write) {
      return write.storage.unsafeGetStorageImpl() == storage;
    });
    if (written || recording_->find(storage) == no_value) {  // which value this is shows when the operator has ended
      waiting_ = libtorch::share(storage);
      recording_->waiting.push_back(this);
      return;
    }
  }
  recording_->attach(*this, recording_->look_up(tensor), storage);
}

void SavedHook::bind_late() {
  const c10::Storage storage = std::move(waiting_);
  waiting_ = c10::Storage();
  c10::StorageImpl* const memory = storage.unsafeGetStorageImpl();
  Id bound = recording_->find(memory);
  if (bound == no_value) bound = recording_->add_from_outside(memory, version_, expected_version_);
  recording_->attach(*this, bound, memory);
}

void SavedHook::give_up() {
  waiting_ = c10::Storage();
}

void SavedHook::check_unmoved() const {
  if (!unmoved()) libtorch::throw_modified(version_, expected_version_, view.dtype, view.sizes());
}

at::Tensor SavedHook::call_unpack_hook() {
  check_unmoved();
  if (held_.defined()) return held_;
  Recording& recording = *recording_;
  c10::Storage storage;
  Id asked = no_value;
  Fingerprint expected;
  {
    const Arbiter lock;
    asked = value;
    expected = fingerprint;
    recording.now = recording.live[asked].saved_at;
    if (recording.observing && recording.in_backward && !recording.seen.moments.empty()) {
      recording.seen.needs.resize(recording.seen.moments.size());
      recording.seen.needs.back().push_back(asked);
    }
    storage = recording.storage(asked);
  }
  if (!storage) {
    const double start = wall_microseconds();
    storage = rebuild(recording, asked);
    const Arbiter lock;
    recording.rebuilding += wall_microseconds() - start;
  }
  if (!expected.empty()) verify(storage, expected);
  return view.of(std::move(storage));
}

void SavedHook::verify(c10::Storage& storage, const Fingerprint& expected) {
  if (const auto blocks = differences(expected, internal::fingerprint(storage, view)); !blocks.empty()) {
    {  // to find out why takes the room that it has
      const Arbiter lock;
      recording_->release(value);
    }
    storage = c10::Storage();
    const double start = wall_microseconds();
    if (!nobody_wrote(*recording_, value, view, blocks)) report_mismatch(value, blocks.front(), expected.size());
    accept_unwritten(storage);
    const Arbiter lock;
    recording_->rebuilding += wall_microseconds() - start;
    return;
  }
  const Arbiter lock;
  recording_->session->count_verified();
  if (static_cast<std::size_t>(value) < recording_->recipes->values.size()) {
    recording_->recipes->values[value].verified = true;
  }
  fingerprint.clear();
}

void SavedHook::accept_unwritten(c10::Storage& storage) {
  {
    const Arbiter lock;
    recording_->recipes->values[value].scratch = true;
    for (SavedHook* const hook : recording_->live[value].hooks) hook->fingerprint.clear();
  }
  storage = rebuild(*recording_, value);
}

// A value may differ only because one it was made from does. The first of those that can be compared is the one to
// name.
void SavedHook::report_mismatch(Id of, std::size_t block, std::size_t blocks) {
  Recording& recording = *recording_;
  for (Id v = 0; v < of; ++v) {
    View there;
    Fingerprint expected;
    {
      const Arbiter lock;
      for (const SavedHook* const one : recording.live[v].hooks) {
        if (one->fingerprint.empty() || !one->unmoved() || !recording.rebuildable(v)) continue;
        there = one->view;
        expected = one->fingerprint;
      }
    }
    if (expected.empty()) continue;
    try {
      const auto different = differences(expected, internal::fingerprint(rebuild(recording, v), there));
      if (different.empty() || nobody_wrote(recording, v, there, different)) continue;
      of = v;
      block = different.front();
      blocks = expected.size();
      break;
    } catch (const std::exception&) {  // no room to find out
    }
  }
  const Arbiter lock;
  const Id op = recording.info(of).maker;
  const OperatorInfo& info = *recording.recipes->operators[op].info;
  recording.session->distrust(recording, op);
  throw MismatchError({info.name, op, of, block, blocks, {}});
}

SavedHook::~SavedHook() {
  if (!recording_) return;
  const Arbiter lock;
  if (waiting_) {
    std::erase(recording_->waiting, this);
  } else if (value != no_value) {
    recording_->detach(*this);
  }
}

}  // namespace reprise::internal
