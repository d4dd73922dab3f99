// The insides of a store, in four files: store_state.cpp (questions, what concerns everything, and values that outlive
// the store), store_put.cpp, store_get.cpp, and store_room.cpp, which makes room in a tier and moves values from one to
// the other.
//
// One lock, `mutex_`, guards the table of values and what it says about them. It is held for short and never while a
// codec, a rule or the file system is at work. For these, a thread takes references to what it works on. Another thread
// may remove the value from the table meanwhile, which `gone` shows afterwards; the last reference frees the buffer or
// removes the file. References are declared before the lock is taken, so that this never happens with the lock held.
//
// No deadlock: only threads that have nothing reserved in memory wait for room there, and likewise on disk, though they
// may be moving a value out of memory at the time. A thread that reads or writes a file has reserved what it needs and
// waits for nothing.
//
// At a fork all locks are taken, in this order: of the background thread, of the table, of the disk, of the ledgers.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "reprise/store/store.h"
#include "store/absences.h"
#include "store/background_thread.h"
#include "store/disk.h"
#include "store/store_forks.h"
#include "store/value.h"

namespace reprise::internal {

class StoreState final : private HasLocks {
 public:
  explicit StoreState(StoreOptions);
  ~StoreState();
  StoreState(const StoreState&) = delete;
  StoreState& operator=(const StoreState&) = delete;

  PutResult put(const std::string& key, const ArrayView&, const PutOptions&);
  enum class Then { keep, remove };  // the value, once it was found
  [[nodiscard]] std::optional<Array> find(const std::string& key, Then);
  bool erase(const std::string& key);
  void clear();

  // Reads the file of a value that is on disk, without decoding it. Throws DiskError if it is not what was written.
  void check(const std::string& key);

  void prefetch(std::span<const Key>);
  void offload(std::span<const Key>);
  void wait() { background_.wait(); }

  [[nodiscard]] bool contains(const std::string& key) const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] const Ledger& ledger(TierKind tier) const { return tiers_[static_cast<int>(tier)].ledger; }
  [[nodiscard]] std::optional<Description> describe(const std::string& key) const;
  [[nodiscard]] StoreStatistics statistics() const;
  void reset_statistics();

  void enabled(bool);
  [[nodiscard]] bool enabled() const;
  void remember(Remember);
  [[nodiscard]] StoreOptions options() const;
  // Returns why there is no value of this key, as the end of a sentence. Empty if that is not known.
  [[nodiscard]] std::string why_not(const std::string& key) const;

 private:
  using Reference = std::shared_ptr<StoredValue>;
  using Values = std::map<std::string, Reference, std::less<>>;

  // A value that is being moved, with its node of `at_rest`, so that putting it back cannot fail.
  struct Move {
    Reference value;
    std::set<StoredValue*, EvictedBefore>::node_type node;
  };
  enum class WithoutRoom { drop, stay };

  [[nodiscard]] StoreTier& tier(TierKind kind) { return tiers_[static_cast<int>(kind)]; }
  [[nodiscard]] const StoreTier& tier(TierKind kind) const { return tiers_[static_cast<int>(kind)]; }

  // ---- store_put.cpp; without the lock ----
  [[nodiscard]] bool remembers(const Offer&);
  [[nodiscard]] std::shared_ptr<Buffer> code(const Codec&, const ArrayView&, Reservation);
  PutResult put_on_disk(const Reference&, const ArrayView&, const Codec& asked, bool fits_memory);
  PutResult commit(const Reference&, const Codec& asked);
  PutResult refuse(const StoredValue&);
  [[nodiscard]] std::shared_ptr<DiskFile> write(const StoredValue&, std::span<const std::byte> coded, Reservation);
  // Returns the size of the file of a value with this many coded bytes.
  [[nodiscard]] Bytes file_bytes(const StoredValue&, Bytes coded) const;

  // ---- store_get.cpp; without the lock ----
  class Reading;
  [[nodiscard]] Array decode(const StoredValue&, const Buffer*, const DiskFile*);
  [[nodiscard]] static Array decode(const StoredValue&, std::span<const std::byte> coded);
  // Removes a value that no other thread uses and that needs no decoding, and returns its memory as an array.
  [[nodiscard]] std::optional<Array> take_over(const std::string& key);

  // ---- store_room.cpp ----
  // Without the lock. Reserves room for a value of this key, and evicts what has to be evicted. With `replacing`, the
  // value that has the key now is not evicted like others: it is removed as soon as its room and what is free are
  // enough. Empty if there is no room, and nothing may be evicted for it.
  [[nodiscard]] std::optional<Reservation> reserve(TierKind, Bytes, const std::string& key, bool replacing);
  [[nodiscard]] std::optional<Reservation> reuse_room(TierKind, Bytes, const std::string& key, bool& in_use);
  [[nodiscard]] bool evict_one(TierKind, const std::string& except);
  void move_to_disk(Move, WithoutRoom);
  [[nodiscard]] bool prefetch_now(const std::string& key);
  void offload_now(const std::string& key);
  // With the lock.
  [[nodiscard]] Values::iterator find_at_rest(std::unique_lock<std::mutex>&, const std::string& key);
  [[nodiscard]] Move begin_move(const Reference&);
  void end_move(Move&, TierKind where);
  [[nodiscard]] Reference remove(Values::iterator);
  void retire(StoredValue&);

  // ---- store_state.cpp ----
  void find_kept_values();
  void write_out();
  // See store_forks.h.
  void before_fork() override;
  void after_fork_in_parent() override;
  void after_fork_in_child() override;
  void take_from_other_threads(Reference&);

  const StoreOptions options_;
  const Codec* const exact_;
  StoreTier tiers_[2];
  const std::unique_ptr<Disk> disk_;  // null: none

  mutable std::mutex mutex_;
  std::condition_variable moved_;  // a value has ended its move
  Values values_;
  StoreStatistics counts_;  // only what is counted; bytes and values are known elsewhere
  Absences absences_;
  std::uint64_t next_number_ = 0;
  bool enabled_ = true;
  std::shared_ptr<const Remember> remember_;

  BackgroundThread background_;  // ends before all the above
  const ForkSubscription fork_subscription_{*this};
};

}  // namespace reprise::internal
