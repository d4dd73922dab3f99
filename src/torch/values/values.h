// The values of a recording: what is kept, packed, in a tier or evicted, and how each can be had again.
//
// A value is *kept* while there is a handle on its storage here, and *resident* if it is kept, or bound (bindings.h)
// and alive because the program has handles of its own. Everything else is recomputed from its recipe, or from a copy
// that is packed or in a tier. Values that came from outside, and those whose recipe cannot be replayed, have no maker:
// they are kept for as long as a recipe may need them.
//
// Under the arbiter's lock.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "torch/recipes/recipe_cursor.h"
#include "torch/values/bindings.h"
#include "torch/values/device_fingerprints.h"
#include "torch/values/journal.h"
#include "torch/values/pending.h"
#include "torch/values/provenance.h"
#include "torch/values/recording_context.h"
#include "torch/values/value_copies.h"
#include "torch/values/victim_queue.h"

namespace reprise::internal {

// Memory that the program has freed under a storage that it keeps, as FSDP does with the parameters of a layer: the
// storage is *emptied*. The program may fill it again, with the same contents.
struct FreedMemory {
  const void* contents = nullptr;  // which are still there; null on an accelerator
  std::size_t bytes = 0;
  bool moved = false;       // the storage has other memory now
  bool by_library = false;  // by a library that will fill the storage again
  bool on_device = false;   // of an accelerator: that the same contents are back cannot be seen
  c10::Storage adopted;     // the memory itself, if a recording wants it
};

class Values {
 public:
  // If `may_evict`, what came from outside is held for the recipes.
  Values(RecipeCursor&, const Journal&, RecordingContext&, bool may_evict);

  [[nodiscard]] std::size_t size() const { return live_.size(); }
  [[nodiscard]] bool may_evict() const { return may_evict_; }
  [[nodiscard]] Bindings& bindings() { return bindings_; }
  [[nodiscard]] const Bindings& bindings() const { return bindings_; }
  [[nodiscard]] const Pending& pending() const { return pending_; }
  [[nodiscard]] Pending& pending() { return pending_; }
  [[nodiscard]] const Provenance& provenance() const { return provenance_; }
  [[nodiscard]] Provenance& provenance() { return provenance_; }
  // Returns the queue with all that is kept now, see newly_kept_.
  [[nodiscard]] VictimQueue& victims(DeviceOrdinal);

  // ---- one value ----
  [[nodiscard]] Bytes bytes(Id value) const { return cursor_.info(value).bytes; }
  [[nodiscard]] DeviceOrdinal device(Id value) const { return cursor_.info(value).device; }
  // Returns whether its recipe brings it back, whether it is resident or not.
  [[nodiscard]] bool recomputable(Id value) const { return provenance_.recomputable(value); }
  [[nodiscard]] const c10::Storage& kept(Id value) const { return live_[value].kept; }  // empty: it is not
  [[nodiscard]] const ValueCopies& copies(Id value) const { return live_[value].copies; }
  [[nodiscard]] ValueCopies& copies(Id value) { return live_[value].copies; }
  // Returns the cost of the pass up to the last save of a value: how long ago that was, and so how soon it is needed.
  [[nodiscard]] float saved_at(Id value) const { return live_[value].saved_at; }
  void save_now(Id value) { live_[value].saved_at = journal_.now(); }

  // ---- where it is ----
  Id add(c10::StorageImpl*, Id maker);
  // Notes that the storage has this value's contents from now on, and no longer those of the value it was bound to.
  void bind(c10::StorageImpl*, Id value);
  void unbind(c10::StorageImpl*, Id value);
  [[nodiscard]] bool resident(Id value) const;
  // Returns a handle on the contents. Empty if the value is not resident.
  [[nodiscard]] c10::Storage storage(Id value) const;
  // Returns the same, also where everything has to be recomputed.
  [[nodiscard]] c10::Storage storage_even_if_evicted(Id value) const;
  // Returns whether the program itself has handles on the storage.
  [[nodiscard]] bool held_by_program(Id value) const { return bindings_.held_by_others(value, live_[value].kept); }

  // ---- keeping and evicting ----
  void keep(Id value, c10::Storage);
  // Keeps a value that cannot be recomputed, or is no victim.
  void hold(Id value, c10::StorageImpl* storage) { live_[value].kept = libtorch::share(storage); }
  void let_go(Id value);
  // Releases the handle, if the value can be recomputed, and its copies. `release_outlasting` does it for a value that
  // must be kept past its inputs, once no recipe can need it.
  void release(Id value);
  bool release_outlasting();  // returns true if any value was released
  // Releases the handle, with a fingerprint for the saved tensors that need the value.
  void evict(Id value);
  // Takes a fingerprint of contents that are about to go, if the value is to be verified. Contents on an accelerator
  // are held until they are read, see device_fingerprints.h.
  void take_fingerprints(Id value, const c10::Storage& contents);
  // See DeviceFingerprints.
  void read_held() { device_fingerprints_->read_held(); }
  // Returns the stream that the contents were made on. Empty on the CPU.
  [[nodiscard]] const std::optional<c10::Stream>& made_on(Id value) const { return live_[value].made_on; }
  // Packs the value; the storage is kept. Returns false if it does not pack, or there is no room. `account` says where
  // the copy is counted.
  bool pack(Id value, const PackedForm&, PackedCopy::Account account = PackedCopy::Account::plan);
  // Begins to put the value into the tier below its device; the storage is kept, and must not be written until that has
  // ended. Returns null if there is no tier, or the value is not resident.
  std::shared_ptr<const TierCopy> put_below(Id value);
  // Returns whether the value cannot be recomputed, is held by nothing else, and was not put below before.
  [[nodiscard]] bool may_put_away(Id value) const;
  // Releases the handle: the copy below is all there is from now on. Does nothing if something else has the storage.
  void put_away(Id value);
  // Notes that the copy came back from the tier with the bits that were put there.
  void mark_copy_verified(Id value);

  // Releases values from outside that only recipes have any more, if what they make of them is still there and has
  // fewer bytes, by this factor: that is kept instead. Returns false if there is none at this device.
  bool give_up_origins(DeviceOrdinal, Bytes factor);

  // ---- writes of the program, see writes.h ----
  // Returns whether the contents have to be copied before the program writes there: they came from outside, and recipes
  // need them.
  [[nodiscard]] bool would_copy(Id value);
  // Gives recipes this copy from now on.
  void replace(Id value, c10::Storage copy, std::optional<c10::Stream> made_on = {});
  // Notes that the contents are overwritten. Unless they were copied, what recipes make of them cannot be recomputed
  // any more, and is kept if it is still there.
  void lose(Id value, Availability how);

  // ---- storages that the program empties, see freed.h ----
  // Returns whether recipes need the memory, because nothing else will bring the contents back.
  [[nodiscard]] bool would_adopt(Id value, const FreedMemory&);
  // Notes that the storage of this value has other memory now, or none. Returns whether more values than before are to
  // be kept past what they were made of.
  bool mark_emptied(Id value, const FreedMemory&);
  [[nodiscard]] bool is_emptied(Id value) const { return live_[value].emptied.has_value(); }
  // Returns whether a value from outside can be read: it is not emptied, or filled again with the same contents.
  [[nodiscard]] bool has_contents(Id value);

  // Releases all that no pending saved tensor needs.
  void end();
  // Releases everything. Handles are dropped when the lock is free.
  void clear();

  // Makes room for as many values as the cursor has.
  void resize();
  // Numbers the values from `from` on anew, from `to` on.
  void renumber(std::size_t from, std::size_t to);

 private:
  // What a value had in it when it was emptied.
  struct Emptied {
    std::size_t bytes;
    Fingerprint fingerprint;  // empty: nothing is compared
  };
  struct LiveValue {
    c10::Storage kept;  // our own handle
    ValueCopies copies;
    float saved_at = 0;
    std::optional<Emptied> emptied;
    std::optional<c10::Stream> made_on;
  };

  bool give_up(Id value, Bytes factor);
  bool keep_what_outlasts(Id value);

  RecipeCursor& cursor_;
  const Journal& journal_;
  RecordingContext& context_;
  const bool may_evict_;
  std::vector<LiveValue> live_;  // by value
  Bindings bindings_;
  Pending pending_;
  Provenance provenance_;
  std::vector<VictimQueue> victims_;     // by device
  std::vector<Id> newly_kept_;           // to be sorted into the queues when one is asked for: mostly, none ever is
  std::size_t look_for_origins_at_ = 0;  // a moment: looking for them takes a while
  const std::shared_ptr<DeviceFingerprints> device_fingerprints_;
  std::vector<Id> released_;  // kept past what they were made of, and recipes may still need them
};

}  // namespace reprise::internal
