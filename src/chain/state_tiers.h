// The tiers for states that a chain does not hold as they are: coded in memory, or on a disk.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "reprise/chain/statistics.h"
#include "reprise/store/store.h"

namespace reprise::internal {

// The bytes and times of putting a state somewhere and getting it back.
struct StateTierTerms {
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

  // The bytes that coding this array takes; 0 without a codec.
  [[nodiscard]] Bytes room(const ArrayView&) const;
  // Returns the default transit: for four states like this one.
  [[nodiscard]] Bytes usual_transit(const ArrayView& first) const;
  // Measures putting this array and getting it back, in a store of its own.
  [[nodiscard]] StateTierTerms measure(StateTier, const ArrayView&) const;
};

// Keeps states by their number, in one store for each tier. Every state that was put stays until it is erased: what
// finds no room is an error at once, and never at the cost of another one.
class StateTiers {
 public:
  StateTiers();
  ~StateTiers();

  // The settings of the next pass; those of a pass that goes on stay as they are.
  void codec(const Codec*);
  void disk(DiskTier, std::optional<Bytes> transit, FileSystem*);
  [[nodiscard]] const StateTierSettings& next() const { return next_; }
  // The settings of the pass that goes on, or of the last one.
  [[nodiscard]] const StateTierSettings& used() const { return used_; }
  // True if the next pass is one that is kept.
  [[nodiscard]] bool will_keep() const { return next_.disk && next_.disk->keep; }
  // Begins a pass. The tiers are empty. `transit` holds unless the settings say otherwise; empty: the usual
  // one of the first state.
  void begin(std::optional<Bytes> transit);
  // The same in the middle of a pass, with the settings that it has.
  void begin_again(std::optional<Bytes> transit);

  // Puts a state into a tier and returns the bytes that it has there. Writing to a disk goes on in the background; the
  // next call throws if it failed. Throws ChainError if there is no room.
  Bytes put(StateTier, Id state, const ArrayView&);
  // Gets a state back. If `last`, it need not stay there.
  [[nodiscard]] Array get(StateTier, Id state, bool last);
  void erase(StateTier, Id state);
  [[nodiscard]] bool contains(StateTier, Id state) const;
  // Announces the states that will be wanted from the disk, in this order, `first` to be added to each.
  void prefetch(std::span<const Id> states, Id first);
  // Removes everything; of what is kept only ends the store.
  void clear() noexcept;
  // Removes everything in the middle of a pass, but not what is kept.
  void clear_for_another_plan() noexcept;

  // True if what is on the disk in this pass outlives the process: see kept_pass.h, which has its store. It is made
  // with this transit, unless the settings name another, if it is not there. `waits`: nothing is in memory on its way
  // to the disk, so that nothing can be coded either.
  [[nodiscard]] bool keeps() const { return used_.disk && used_.disk->keep; }
  [[nodiscard]] bool disk_is_limited() const { return used_.disk && used_.disk->budget < largest_bytes; }
  [[nodiscard]] Store& kept_store(Bytes transit, bool waits);
  // Removes what it has in its folder, whether or not that can be read.
  void remove_kept();
  // Ends that store, so that the folder can be looked at.
  void close_kept() noexcept;

  [[nodiscard]] Bytes memory() const;  // bytes in memory, on their way included
  [[nodiscard]] Bytes on_disk() const;
  [[nodiscard]] StoreStatistics statistics(StateTier) const;

 private:
  [[nodiscard]] Store& store(StateTier, Bytes transit);
  [[nodiscard]] Store* existing(StateTier) const;
  static void clear(std::unique_ptr<Store>&) noexcept;
  [[noreturn]] void fail_disk(Id state, Bytes) const;
  void forget_file(Id state);

  StateTierSettings next_, used_;
  bool disk_is_new_ = false;      // the next settings have another disk than those in use
  std::optional<Bytes> transit_;  // of this pass
  std::unique_ptr<Store> packed_, disk_;
  // By state: the bytes of its file, whether it is written already or not.
  std::unordered_map<Id, Bytes> files_;
  Bytes file_bytes_ = 0;  // of all of them
};

}  // namespace reprise::internal
