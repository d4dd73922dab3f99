// A tier below the memory of a device: copies of values go there and come back beside the computation. What a transfer
// can be, and what may become of that, is one table (tier_transfer.h). What is special to files is in disk_tier.h, what
// is special to streams of an accelerator in host_tier.h.
//
// A put is begun under the arbiter's lock, where nothing waits for files or devices: what it takes beside that is done
// by a thread of the tier, or when the arbiter is free (Arbiter::after), or by whoever needs it to be over, unless
// somebody has begun with it. A copy that is to be put can be asked for at once: its contents are still in
// memory. There are no buffers, and the meter counts what is on its way, because the transfer has a handle on it.
//
// The lock in here comes after the arbiter and is held for a few instructions: no file, no device and no memory of
// LibTorch's is touched under it. A thread of the tier touches nothing of LibTorch's at all, so whoever allocates may
// wait for it, whatever locks of others the caller holds; handles that it is done with are dropped by others.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "reprise/report/summary.h"
#include "store/ledger.h"
#include "torch/offload/tier_account.h"
#include "torch/offload/tier_transfer.h"
#include "torch/offload/value_copy.h"

namespace reprise::internal {

class TierCopy;

class TransferTier : public std::enable_shared_from_this<TransferTier> {
 public:
  virtual ~TransferTier() = default;
  TransferTier(const TransferTier&) = delete;
  TransferTier& operator=(const TransferTier&) = delete;

  [[nodiscard]] TierCosts costs() const;
  [[nodiscard]] TierTotals totals() const;
  // Says what the last step has done, which began with `before`.
  virtual void report(Summary&, const TierTotals& before) const = 0;

  // Returns the error of a copy that is lost.
  [[nodiscard]] virtual std::exception_ptr lost_error(const std::string& why) const = 0;

  // Begins to put what is in this storage, which nobody may write into until that has ended. If it is to be verified,
  // what comes back is compared with what is there now.
  [[nodiscard]] std::shared_ptr<const TierCopy> put(c10::Storage, const std::optional<c10::Stream>& made_on,
                                                    bool verify);

  // Goes on with what was begun, and frees memory that has been put, or is of no use any more. Returns false if there
  // was none. Not under the arbiter's lock.
  bool drain_completed();
  // The same as soon as this thread does not hold the arbiter.
  void drain_later();
  // Drains, and if there was nothing, waits for what is to be put next. Returns false if nothing is. Not under the
  // arbiter's lock.
  [[nodiscard]] bool finish_next_put();
  // Waits until no transfer needs memory of the device any more. Not under the arbiter's lock.
  void finish_all();
  // Gives up what was got ahead of time and nobody has asked for. Returns false if there is none.
  [[nodiscard]] bool give_up_fetched();
  // The process ends: nothing is left, and nothing will be put. Not under the arbiter's lock.
  virtual void end() noexcept {}

  // See forks.h.
  void lock_for_fork();
  void unlock_in_parent();
  void unlock_in_child();

 protected:
  using State = TransferState;
  using Shared = std::shared_ptr<TierTransfer>;
  using Lock = std::unique_lock<std::mutex>;
  using Work = TierAccount::Work;

  // Who does what was begun.
  enum class Runs : std::uint8_t {
    on_thread,   // a thread of the tier, one thing after the other. What is done is over
    on_streams,  // streams of the device: what is done is over in their order, and memory is freed in it
  };

  TransferTier(c10::Device, Runs, Bytes capacity, TierCosts, TierAccount::Learns);

  // ---- what is special to a tier; without locks ----
  // Asks the thread for what is to be done next. Returns false if nobody will do it before somebody needs it.
  virtual bool begin(const Shared&) { return false; }
  // Puts the contents of the memory. Throws if there is no room, or they cannot be put.
  [[nodiscard]] virtual std::unique_ptr<TierContents> store(TierTransfer&) = 0;
  // Gets the contents into the memory.
  virtual void load(TierTransfer&) = 0;
  // Frees memory, in the order of its streams.
  virtual void free(TransferMemory);
  // Makes this thread's stream wait for what is in the memory.
  virtual void use_here(const TransferMemory&, bool reloaded);
  // Throws what failed on the device, where that may be why contents differ.
  virtual void expect_no_failure() {}
  // Finds more room when no transfer is left to remove.
  virtual void reclaim_room() {}
  // Learns what transfers on streams took, if there are at least so many to look at.
  virtual void learn_times(std::size_t) {}
  virtual void before_fork() {}
  virtual void after_fork_in_parent() {}
  virtual void after_fork_in_child() {}

  // ---- for these ----
  // Calls `fits` until it returns true, and removes what nobody asks for any more in between. Returns false if that
  // is not enough.
  [[nodiscard]] bool make_room_until(c10::function_ref<bool()> fits);
  // Measures what transfers cost: some of these sizes go there and back at once. Throws what they throw.
  void measure(std::span<const std::size_t> sizes, c10::function_ref<c10::Storage(std::size_t)> memory);
  // Does what is to be done next, on the thread of the tier.
  void work_on(const Shared&);
  // Takes what the tier has, and loses all copies, when nobody is busy.
  void lose_all(const std::string& why);

  const c10::Device device_;
  Ledger room_;
  mutable std::mutex mutex_;  // of all below
  TierAccount account_;

 private:
  friend class TierCopy;
  struct Outcome {
    Spent spent;
    std::string why;  // if it has failed
    std::exception_ptr error;
  };

  // ---- one transfer, with the lock: since then, by this thread ----
  Spent do_put(const Shared&, Lock&, const Stamp& since);
  Spent do_get(const Shared&, Lock&, const Stamp& since);
  Spent do_remove(const Shared&, Lock&, const Stamp& since);
  [[nodiscard]] Outcome without_lock(Lock&, const Stamp& since, c10::function_ref<void()>);
  void finish_putting(const Shared&, Lock&);
  void finish_getting(const Shared&, Lock&);
  void wait_past(State busy, Work, TierTransfer&, Lock&, Stamp start);
  void return_memory(TierTransfer&);
  void fail(TierTransfer&, State how, const Outcome&);
  void put_aside_to_remove(const Shared&);
  void remove_dropped(const Shared&, Lock&);
  [[nodiscard]] Shared oldest_to_remove();
  [[nodiscard]] Shared next_unfinished_put();
  bool give_up(TierTransfer&);

  // ---- one transfer, without it ----
  [[nodiscard]] Shared begin_put(TransferMemory, Fingerprint expected, bool verify);
  void finish_put(const Shared&);
  void fetch(const Shared&);
  [[nodiscard]] bool begin_get(const Shared&, TransferMemory);
  [[nodiscard]] c10::Storage contents(const Shared&);
  void verify(TierTransfer&, const c10::Storage&);
  void give_up_fetched(TierTransfer&);
  void drop(const Shared&);
  void called(Work, double since);
  [[nodiscard]] bool put_and_free(const Shared&);
  void remove_completed();
  void go_there_and_back(c10::Storage);

  const bool on_streams_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::unordered_map<std::uint64_t, Shared> all_;  // that are not removed, by number
  std::deque<Shared> puts_;                        // oldest first; some are finished by now
  std::deque<Shared> to_remove_;                   // oldest first; some are removed by now
  std::vector<TransferMemory> returned_;           // to be freed
  std::atomic<bool> any_to_drain_ = false;
  int busy_ = 0;      // transfers that are being put or got
  int removing_ = 0;  // and removed
};

// A copy of a value in a tier. When it ends, so does what the tier has of it.
class TierCopy final : public ValueCopy {
 public:
  TierCopy(std::shared_ptr<TransferTier> tier, std::shared_ptr<TierTransfer> transfer)
      : tier_(std::move(tier)), transfer_(std::move(transfer)) {}
  ~TierCopy() override;

  [[nodiscard]] c10::Storage contents() const override { return tier_->contents(transfer_); }
  [[nodiscard]] bool usable() const override { return state() != TransferState::lost; }
  [[nodiscard]] bool fetched() const override { return is_fetched(state()); }
  [[nodiscard]] bool verified() const override { return state() == TransferState::verified; }
  [[nodiscard]] TransferState state() const;

  // Waits until the contents are there, or turn out to be lost: from then on the memory of the value may be written,
  // and freed. On an accelerator it is what this thread gives to the device next that waits. Not under the arbiter's
  // lock.
  void finish_put() const { tier_->finish_put(transfer_); }
  // Begins to get the contents, into new memory. Throws BudgetError. Not under the arbiter's lock.
  void fetch() const { tier_->fetch(transfer_); }
  // Gives up what was fetched: nobody counts on it any more.
  void give_up_fetched() const { tier_->give_up_fetched(*transfer_); }

 private:
  std::shared_ptr<TransferTier> tier_;  // outlives what is in the transfer
  const std::shared_ptr<TierTransfer> transfer_;
};

}  // namespace reprise::internal
