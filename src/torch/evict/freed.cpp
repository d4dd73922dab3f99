#include "torch/evict/freed.h"

#include <algorithm>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/recipes/library_scopes.h"
#include "torch/values/recording.h"
#include "torch/values/recordings.h"

namespace reprise::internal {
namespace {

// The recordings that have a value in the memory: that of the tag, and others that know it by its storage, and no
// longer do.
c10::SmallVector<std::pair<Recording*, Id>, 2> knowing(const meter::Tag& tag, c10::StorageImpl* storage) {
  c10::SmallVector<std::pair<Recording*, Id>, 2> all;
  for (Recording* const recording : Recordings::of_process().all()) {
    Bindings& bindings = recording->values().bindings();
    if (bindings.number() == tag.recording) {
      all.emplace_back(recording, tag.value);
    } else if (const Id value = bindings.find(storage); value != no_value) {
      bindings.unbind(storage);
      all.emplace_back(recording, value);
    }
  }
  return all;
}

}  // namespace

bool memory_freed(meter::Header& header) {
  const Arbiter lock;
  const meter::Tag tag = std::exchange(header.tag, {});
  const Bindings* const bound = Recordings::of_process().bindings_of(tag.recording);
  c10::Storage storage = bound ? bound->last_storage(tag.value) : c10::Storage();
  if (!storage) return false;  // the storage itself goes, which is the usual way
  // Its memory has been replaced by now. A value that was recomputed is bound to another storage, which has its memory.
  const bool held_elsewhere = bound->find(storage.unsafeGetStorageImpl()) == tag.value;
  FreedMemory how;
  how.on_device = meter::is_on_device(header);
  how.contents = how.on_device ? nullptr : &header + 1;
  how.bytes = std::min(storage.nbytes(), meter::bytes_of_contents(header));
  how.moved = storage.data() != nullptr;
  how.by_library = library_scopes() > 0;
  if (!held_elsewhere) {
    for (auto& [recording, value] : knowing(tag, storage.unsafeGetStorageImpl())) {
      if (!how.adopted && recording->values().would_adopt(value, how)) how.adopted = meter::take(header, how.bytes);
      recording->mark_emptied(value, how);
    }
  }
  Arbiter::discard(std::move(storage));
  const bool taken = static_cast<bool>(how.adopted);
  Arbiter::discard(std::move(how.adopted));
  return taken;
}

}  // namespace reprise::internal
