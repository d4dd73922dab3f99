#include "torch/hooks/saved.h"

#include <ATen/SequenceNumber.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>
#include <utility>

#include "reprise/torch/errors.h"
#include "torch/evict/saved_values.h"
#include "torch/libtorch/clock.h"
#include "torch/libtorch/error_translation.h"
#include "torch/memory/arbiter.h"
#include "torch/recipes/fingerprint.h"
#include "torch/record/operator_call.h"
#include "torch/replay/replayer.h"
#include "torch/replay/uninitialized_bytes.h"
#include "torch/session/thread_state.h"
#include "torch/values/device_fingerprints.h"

namespace reprise::internal {
namespace {

// A value may differ only because one it was made from does. The first of those that can be compared is the one to
// name.
[[noreturn]] void report_mismatch(Recording& recording, Id of, std::size_t block, std::size_t blocks) {
  for (Id v = 0; v < of; ++v) {
    View there;
    Fingerprint expected;
    {
      const Arbiter lock;
      for (const SavedTensor* const one : recording.values().pending().of(v)) {
        if (one->fingerprint.empty() || !one->unmoved() || !recording.values().recomputable(v)) continue;
        there = one->view;
        expected = one->fingerprint;
      }
    }
    if (expected.empty()) continue;
    try {
      const auto different = differences(expected, fingerprint(recompute(recording, v), there));
      if (different.empty() || differs_only_in_uninitialized(recording, v, there, different)) continue;
      of = v;
      block = different.front();
      blocks = expected.size();
      break;
    } catch (const std::exception&) {  // no room to find out
    }
  }
  const Arbiter lock;
  const Id op = recording.cursor().info(of).maker;
  const OperatorInfo& info = *recording.cursor().recipes().operators[op].info;
  recording.mark_inexact(op);
  throw MismatchError({info.name, op, of, block, blocks, {}});
}

void count_held(Counters& counters, const at::Tensor& tensor) {
  const Bytes bytes = libtorch::bytes_of_contents(tensor);
  const Arbiter lock;
  if (!tensor.device().is_cpu()) return counters.on_other_device(bytes);
  counters.kept("saved tensors that are not plain", "subclasses and the like are kept as they are", bytes);
}

// Returns whether it is a result of the node that saves it, which is the newest on this thread.
bool is_output(const at::Tensor& tensor) {
  const auto* const meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta && meta->grad_fn_ && meta->grad_fn_->sequence_nr() + 1 == at::sequence_number::peek();
}

}  // namespace

void SavedHook::call_pack_hook(const at::Tensor& tensor) {
  needs_gradient_ = tensor.requires_grad();
  copied_seen_ = is_output(tensor);
  // Without hooks LibTorch saves such a tensor in this way.
  if (copied_seen_ && libtorch::any_modes()) (void)tensor.tensor_data();
  saved_.original = Original(tensor);
  if (const libtorch::Version& version = libtorch::version_of(tensor); version.enabled()) {
    saved_.version = version;
    saved_.expected_version = version.current_version();
  }
  const ThreadState& here = this_thread();
  const bool plain = libtorch::is_plain(tensor);
  if (!here.recording || !plain || !libtorch::storage_of(tensor)->data()) {
    hold(tensor);
    if (here.source && !plain) count_held(here.source->context().counters(), tensor);
    return;
  }
  recording_ = here.recording;
  saved_.view = View(tensor);
  c10::StorageImpl* const storage = libtorch::storage_of(tensor);
  if (OperatorCall* const call = recording_->call()) return call->add_waiting(saved_, storage);
  const Arbiter lock;
  attach(*recording_, saved_, look_up(*recording_, tensor), storage);
}

void SavedHook::hold(const at::Tensor& tensor) {
  if (!needs_gradient_) {
    held_ = tensor;
    return;
  }
  std::optional<c10::impl::ExcludeDispatchKeyGuard> unseen;
  if (libtorch::is_plain(tensor)) unseen.emplace(c10::python_ks);
  held_ = tensor.tensor_data();  // itself would be a cycle
}

at::Tensor SavedHook::call_unpack_hook() {
  return through_error_door([this] {
    at::Tensor tensor = unpacked();
    // LibTorch makes a variable of it; without hooks only of what a node has saved of its own results.
    const bool unseen = needs_gradient_ && !copied_seen_ && libtorch::any_modes() && libtorch::is_plain(tensor);
    return unseen ? libtorch::to_be_copied_unseen(tensor) : tensor;
  });
}

SavedHook::Asked SavedHook::ask() {
  Recording& recording = *recording_;
  Asked asked;
  const Arbiter lock;
  const Id value = asked.value = saved_.value;
  asked.below = recording.values().copies(value).below();
  asked.expected = saved_.fingerprint;
  recording.journal().go_to(recording.values().saved_at(value));
  if (recording.in_backward()) recording.journal().needed(value);
  // Outside of backward the program looks at the graph, and finds what it has itself.
  asked.storage =
      recording.in_backward() ? recording.values().storage(value) : recording.values().storage_even_if_evicted(value);
  asked.made_on = recording.values().made_on(value);
  if (saved_.unread) std::rethrow_exception(saved_.unread);
  return asked;
}

at::Tensor SavedHook::unpacked() {
  saved_.check_unmoved();
  if (held_.defined()) return held_;
  saved_.original.check_attached();
  Recording& recording = *recording_;
  auto [value, storage, made_on, expected, below] = ask();
  LateCosts* const late = recording.journal().late();
  if (late && (!storage || !expected.empty())) late->pause();
  const bool recomputed = !storage;
  if (storage) {
    libtorch::use_here(storage, made_on);
  } else {
    const double start = wall_microseconds();
    storage = recompute(recording, value);
    const Arbiter lock;
    recording.journal().add_recomputing(wall_microseconds() - start);
  }
  if (below) below->finish_put();  // from here on the program may write into it
  // What comes from a disk was compared there with what was written; of its recipe that says nothing.
  if (!expected.empty() && !(below && below->usable())) verify(storage, expected);
  if (late) late->go_on();
  if (recomputed) return saved_.view.of(std::move(storage));
  if (at::Tensor same = saved_.same_in(storage); same.defined()) return same;
  at::Tensor tensor = saved_.view.of(std::move(storage));
  if (saved_.version.enabled()) torch::autograd::impl::set_version_counter(tensor, saved_.version);
  return tensor;
}

void SavedHook::verify(c10::Storage& storage, const Fingerprint& expected) {
  const Id value = saved_.value;
  if (const auto blocks = differences(expected, fingerprint(storage, saved_.view)); !blocks.empty()) {
    expect_no_failure(storage);
    {  // to find out why takes the room that it has
      const Arbiter lock;
      recording_->values().release(value);
    }
    storage = c10::Storage();
    const double start = wall_microseconds();
    if (!differs_only_in_uninitialized(*recording_, value, saved_.view, blocks)) {
      report_mismatch(*recording_, value, blocks.front(), expected.size());
    }
    accept_uninitialized(storage);
    const Arbiter lock;
    recording_->journal().add_recomputing(wall_microseconds() - start);
    return;
  }
  const Arbiter lock;
  recording_->context().counters().verified();
  recording_->cursor().mark_verified(value);
  saved_.fingerprint.clear();
}

void SavedHook::accept_uninitialized(c10::Storage& storage) {
  {
    const Arbiter lock;
    recording_->cursor().mark_partly_uninitialized(saved_.value);
    for (SavedTensor* const saved : recording_->values().pending().of(saved_.value)) saved->fingerprint.clear();
  }
  storage = recompute(*recording_, saved_.value);
}

SavedHook::~SavedHook() {
  if (!recording_) return;
  const Arbiter lock;
  if (saved_.waiting) {
    if (OperatorCall* const call = recording_->call()) call->remove_waiting(saved_);
  } else if (saved_.value != no_value) {
    detach(*recording_, saved_);
  }
}

}  // namespace reprise::internal
