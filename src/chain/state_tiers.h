// The tiers for states that a chain does not hold as they are: coded in memory, or on a disk.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "reprise/chain/statistics.h"
#include "reprise/store/store.h"

namespace reprise::internal {

// The bytes and times of putting a state somewhere and getting it back.
struct StateTierCosts {
  Bytes bytes = 0;
  double put_seconds = 0;
  double get_seconds = 0;
};

// Returns the memory of a disk's store for this many states of this size in transit, one of which is being encoded in
// `room` bytes.
[[nodiscard]] inline Bytes transit_bytes(Bytes states, Bytes size, Bytes room) {
  return states == 0 ? 0 : (states - 1) * size + std::max(size, room);
}

// Which tiers there are.
struct StateTierSettings {
  const Codec* codec = nullptr;  // of the states that are put. Null: exact
  std::optional<DiskTier> disk;
  std::optional<Bytes> transit;  // of memory for states on their way to and from the disk; empty: see begin()
  FileSystem* files = nullptr;

  [[nodiscard]] bool is_disk_limited() const { return disk && disk->budget < largest_bytes; }
  // Returns the bytes that coding this array takes; 0 without a codec.
  [[nodiscard]] Bytes room(const ArrayView&) const;
  // Returns the default transit: for four states like this one.
  [[nodiscard]] Bytes usual_transit(const ArrayView& first) const;
  // Measures putting this array and getting it back, in a store of its own.
  [[nodiscard]] StateTierCosts measure(StateTier, const ArrayView&) const;
};

// Keeps states by their number, in one store for each tier. Every state that was put stays until it is erased: what
// finds no room is an error at once, and never at the cost of another one.
class StateTiers {
 public:
  StateTiers();
  ~StateTiers();

  // ---- settings ----

  // Set the tiers of the next pass. A pass that goes on has those that it began with.
  void set_codec(const Codec*);
  void set_disk(DiskTier, std::optional<Bytes> transit);
  // Sets what stands for the machine's file system, for disks that are set afterwards. Null: the machine's.
  void set_file_system(FileSystem* files) { next_.files = files; }
  [[nodiscard]] const StateTierSettings& next_settings() const { return next_; }
  // Returns the settings of the pass that goes on, or of the last one.
  [[nodiscard]] const StateTierSettings& settings() const { return used_; }
  // True if the next pass outlives the process: see kept_pass.h.
  [[nodiscard]] bool is_next_kept() const { return next_.disk && next_.disk->keep; }
  // Begins a pass. The tiers are empty. `transit` holds unless the settings say otherwise; empty: the usual
  // one of the first state.
  void begin(std::optional<Bytes> transit);
  // Sets another transit in the middle of a pass.
  void begin_again(std::optional<Bytes> transit);

  // ---- states ----

  // Returns the key of a state that is saved by hand, which may be put while the schedule has put it as well.
  [[nodiscard]] static Id saved_key(Id state) { return -1 - state; }
  // Takes states that were saved by hand, and are in a tier, for those of the pass: they are found by their number.
  void adopt_saved(std::span<const Id> states) { adopted_.insert(states.begin(), states.end()); }

  // Puts a state into a tier and returns the bytes that it has there. Writing to a disk goes on in the background; the
  // next call throws if it failed. Throws ChainError if there is no room.
  Bytes put(StateTier, Id state, const ArrayView&);
  // Gets a state back. If `last`, it need not stay there.
  [[nodiscard]] Array get(StateTier, Id state, bool last);
  // Returns a state that stays in whichever tier has it. Empty if none has.
  [[nodiscard]] std::optional<Array> find(Id state);
  void erase(StateTier, Id state);
  [[nodiscard]] bool contains(StateTier, Id state) const;
  // Announces the states that will be wanted from the disk, in this order, `first` to be added to each.
  void prefetch(std::span<const Id> states, Id first);
  // Removes everything; of what is kept only ends the store.
  void clear() noexcept;
  // Removes everything in the middle of a pass, but not what is kept.
  void clear_for_another_plan() noexcept;

  // ---- what outlives the process: see kept_pass.h ----

  // True if what is on the disk in this pass is kept.
  [[nodiscard]] bool is_kept() const { return used_.disk && used_.disk->keep; }
  // Returns the store. If it is not there, it is made with this transit unless the settings name another. `waits`:
  // nothing is in memory on its way to the disk, so that nothing can be coded either.
  [[nodiscard]] Store& kept_store(Bytes transit, bool waits);
  // Removes what the store has in its folder, whether or not that can be read.
  void remove_kept();
  // Ends the store, so that its folder can be opened by another one.
  void close_kept() noexcept;

  // ---- numbers ----

  [[nodiscard]] Bytes memory() const;  // bytes in memory, on their way included
  [[nodiscard]] Bytes on_disk() const;
  [[nodiscard]] StoreStatistics statistics(StateTier) const;

 private:
  [[nodiscard]] Store& store(StateTier, Bytes transit);
  [[nodiscard]] Store* existing(StateTier) const;
  static void clear(std::unique_ptr<Store>&) noexcept;
  [[noreturn]] void fail_disk(Id state, Bytes) const;
  [[nodiscard]] Id key_of(Id state) const { return adopted_.contains(state) ? saved_key(state) : state; }
  void discount_file(Id key);

  StateTierSettings next_, used_;
  bool disk_is_new_ = false;      // the next settings have another disk than those in use
  std::optional<Bytes> transit_;  // of this pass
  std::unique_ptr<Store> packed_, disk_;
  std::set<Id> adopted_;
  // By key: the bytes of the file, whether it is written already or not.
  std::unordered_map<Id, Bytes> files_;
  Bytes file_bytes_ = 0;  // of all of them
};

}  // namespace reprise::internal
