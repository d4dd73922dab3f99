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
#include "torch/values/recording_context.h"
#include "torch/values/value_copies.h"
#include "torch/values/victim_queue.h"

namespace reprise::internal {

// How the contents of a value can be had again, beside a copy.
enum class Availability : std::uint8_t {
  not_seen,       // a value of the recipes that are followed: it has not come yet
  normal,         // by its recipe; from outside: it is kept for as long as a recipe may need it
  recipe_broken,  // its recipe needs a lost value, directly or not: it is kept like one from outside
  saved_copy,     // what is kept is a copy of our own, made before the program overwrote the contents
  lost,           // the contents were overwritten while no recipe needed them
  lost_no_room,   // the contents were overwritten, and there was no room for a copy
};

// A value from outside is copied or lost, one that was made becomes an orphan first. Nothing leads back.
[[nodiscard]] constexpr bool may_become(Availability from, Availability to) {
  switch (from) {
    case Availability::not_seen: return to == Availability::normal;
    case Availability::normal: return to > Availability::normal;
    case Availability::recipe_broken: return to > Availability::recipe_broken;
    case Availability::saved_copy:
    case Availability::lost:
    case Availability::lost_no_room: return false;
  }
  return false;
}

class Values {
 public:
  // May evict: what came from outside is held for the recipes.
  Values(RecipeCursor&, const Journal&, RecordingContext&, bool may_evict);

  [[nodiscard]] std::size_t size() const { return live_.size(); }
  [[nodiscard]] bool may_evict() const { return may_evict_; }
  [[nodiscard]] Bindings& bindings() { return bindings_; }
  [[nodiscard]] const Bindings& bindings() const { return bindings_; }
  [[nodiscard]] const Pending& pending() const { return pending_; }
  [[nodiscard]] Pending& pending() { return pending_; }
  // With all that is kept now, see kept_lately_.
  [[nodiscard]] VictimQueue& victims(DeviceOrdinal);

  // ---- one value ----
  [[nodiscard]] Bytes bytes(Id value) const { return cursor_.info(value).bytes; }
  [[nodiscard]] DeviceOrdinal device(Id value) const { return cursor_.info(value).device; }
  // Those that count at this device.
  [[nodiscard]] Bytes bytes_at(DeviceOrdinal device, Id value) const {
    return this->device(value) == device ? bytes(value) : 0;
  }
  // By its recipe, whether it is resident or not.
  [[nodiscard]] bool recomputable(Id value) const {
    const RecordedValue& info = cursor_.info(value);
    return info.maker != no_operator && !info.must_keep_past_inputs &&
           live_[value].availability <= Availability::normal;
  }
  [[nodiscard]] Availability availability(Id value) const { return live_[value].availability; }
  [[nodiscard]] const c10::Storage& kept(Id value) const { return live_[value].kept; }  // empty: it is not
  [[nodiscard]] const std::shared_ptr<const PackedCopy>& packed(Id value) const { return live_[value].copies.packed(); }
  // In the tier below its device; nullptr: there is none.
  [[nodiscard]] const std::shared_ptr<const TierCopy>& below(Id value) const { return live_[value].copies.below(); }
  // The copy to have it from; nullptr: there is none.
  [[nodiscard]] std::shared_ptr<const ValueCopy> copy(Id value) const { return live_[value].copies.usable(); }
  // Cost of the pass up to its last save: how long ago that was, and so how soon it is needed.
  [[nodiscard]] float saved_at(Id value) const { return live_[value].saved_at; }
  void save_now(Id value) { live_[value].saved_at = journal_.now(); }
  // A recipe of this pass reads it.
  void use(Id value);

  // ---- where it is ----
  Id add(c10::StorageImpl*, Id maker);
  // The storage has this value's contents from now on, and no longer those of the value it was bound to.
  void bind(c10::StorageImpl*, Id value);
  void unbind(c10::StorageImpl*, Id value);
  [[nodiscard]] bool resident(Id value) const;
  // A handle on the contents; empty if it is not resident.
  [[nodiscard]] c10::Storage storage(Id value) const;
  // The same, also where everything has to be recomputed.
  [[nodiscard]] c10::Storage storage_even_if_evicted(Id value) const;
  // The program itself has handles on its storage.
  [[nodiscard]] bool held_by_program(Id value) const { return bindings_.held_by_others(value, live_[value].kept); }

  // ---- keeping and evicting ----
  void keep(Id value, c10::Storage);
  // One that cannot be recomputed, or that is no victim.
  void hold(Id value, c10::StorageImpl* storage) { live_[value].kept = libtorch::share(storage); }
  void let_go(Id value);
  void drop_packed(Id value) { live_[value].copies.drop_packed(); }
  void drop_copies(Id value) { live_[value].copies.drop(); }
  // Lets go of our handle, if it can be recomputed, and of its copies. One that must_keep_past_inputs what it was made
  // of is let go of by `release_outlasting`, once no recipe can need it.
  void release(Id value);
  bool release_outlasting();  // false: of none
  // Lets go of our handle, with a fingerprint for those who wait for it.
  void evict(Id value);
  // The contents are about to go: a fingerprint for those who wait for them, if it is to be verified. Those on an
  // accelerator are held until they have been read, see device_fingerprints.h.
  void take_fingerprints(Id value, const c10::Storage& contents);
  // See DeviceFingerprints.
  void read_held() { device_fingerprints_->read_held(); }
  // The stream that its contents were made on; none: they are on the CPU.
  [[nodiscard]] const std::optional<c10::Stream>& made_on(Id value) const { return live_[value].made_on; }
  // Packs it; the storage is kept. False: it does not pack, or there is no room. The copy is among the other bytes if
  // no plan is told of it.
  bool pack(Id value, const PackedForm&, PackedCopy::Account account = PackedCopy::Account::plan);
  // Begins to put it into the tier below its device; the storage is kept. Nobody may write into it until that has
  // ended. nullptr: there is no tier, or it is not resident.
  std::shared_ptr<const TierCopy> put_below(Id value);
  // It cannot be recomputed, nobody else has it, and it was not put below before.
  [[nodiscard]] bool may_put_away(Id value) const;
  // Its copy there is all there is from now on, unless somebody has it by now.
  void put_away(Id value);
  // Its copy came back from the tier with the bits that were put there.
  void mark_copy_verified(Id value);
  // Its copy could not be read.
  void lose_copy(Id value) { live_[value].copies.drop_below(); }

  // Lets go of values from outside that only recipes have any more, if what they make of them is still there and has
  // fewer bytes, by this factor: that is kept instead. False: there is none at this device.
  bool give_up_origins(DeviceOrdinal, Bytes factor);

  // Whether the recipe of a pending value, directly or not, needs this one.
  [[nodiscard]] bool needed(Id value);
  // Who is pending has changed.
  void pending_changed() { needed_known_ = false; }

  // ---- writes of the program, see writes.h ----
  // Whether the contents have to be copied before the program writes there: they came from outside, and recipes need
  // them.
  [[nodiscard]] bool would_copy(Id value);
  // The copy is what recipes get from now on.
  void replace(Id value, c10::Storage copy, std::optional<c10::Stream> made_on = {});
  // The contents are overwritten. Unless they were copied, what recipes make of them cannot be recomputed any more, and
  // is kept if it is still there.
  void lose(Id value, Availability how);

  // ---- memory that the program frees, see freed.h ----
  struct Freed {
    const void* contents = nullptr;  // which are still there
    std::size_t bytes = 0;
    bool moved = false;       // the storage has other memory now
    bool by_library = false;  // a library that will bring them back has done it
    bool far = false;         // nobody can say whether the same contents are back
    c10::Storage taken;       // the memory itself, if anybody wants it
  };
  // Whether recipes need the memory, because nobody else will bring the contents back.
  [[nodiscard]] bool would_take(Id value, const Freed&);
  // The storage of this value has other memory now, or none. True: more values than before outlast what they were made
  // of.
  bool freed(Id value, const Freed&);
  [[nodiscard]] bool is_away(Id value) const { return live_[value].away.has_value(); }
  // Whether a value from outside can be read: it is not away, or back with the same contents.
  [[nodiscard]] bool has_contents(Id value);

  // Only what pending saved tensors need stays.
  void end();
  // Nothing stays. Handles are dropped when the lock is free.
  void clear();

  // There are as many as the cursor has.
  void resize();
  // The values from `from` on are numbered from `to` on.
  void renumber(std::size_t from, std::size_t to);

 private:
  // What a value had in it when it went away.
  struct Away {
    std::size_t bytes;
    Fingerprint fingerprint;  // empty: nothing is compared
  };
  struct LiveValue {
    c10::Storage kept;  // our own handle
    ValueCopies copies;
    float saved_at = 0;
    int uses = 0;                // by recipes of this pass
    Id first_use = no_operator;  // the first of them
    Availability availability = Availability::not_seen;
    std::optional<Away> away;
    std::optional<c10::Stream> made_on;
  };

  void become(Id value, Availability);
  bool give_up(Id value, Bytes factor);
  void find_needed();
  bool keep_what_outlasts(Id value);

  RecipeCursor& cursor_;
  const Journal& journal_;
  RecordingContext& context_;
  const bool may_evict_;
  std::vector<LiveValue> live_;  // by value
  Bindings bindings_;
  Pending pending_;
  std::vector<VictimQueue> victims_;  // by device
  std::vector<Id> kept_lately_;       // to be sorted into the queues when one is asked for: mostly, none ever is
  std::vector<bool> needed_;          // by value, if known
  bool needed_known_ = false;
  std::size_t look_for_origins_at_ = 0;  // a moment: looking for them takes a while
  const std::shared_ptr<DeviceFingerprints> device_fingerprints_;
  std::vector<Id> released_;  // that outlast what they were made of, and that recipes may still need
};

}  // namespace reprise::internal
