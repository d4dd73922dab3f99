// The bytes of one tier, on paper. Whoever wants bytes reserves them first, and gives them back after they are free
// again, so that what is held can never be more than what is written here, and that never passes the budget.
//
// Some reserved bytes are settled: they belong to a value that is at rest in the store, and only giving it up would
// bring them back. The others are loose: somebody works on what they are for and will, without waiting for bytes of
// this tier, either give them back or settle them. So whoever lacks room may wait while there are loose ones, and has
// no reason to wait when there are none.
//
// Reserved bytes are held once they are really there: memory is allocated, a file is written. Only what is held counts
// for the peak.
//
// The lock in here is held for a few instructions and never while another one is taken: everything here may be called,
// and reservations may end, with or without a lock of the store's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

class Ledger;

// Bytes that are reserved for its owner, until it ends. Loose at first. One thread at a time.
class REPRISE_EXPORT Reservation {
 public:
  Reservation() = default;
  ~Reservation() { give_back(); }
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;

  [[nodiscard]] Bytes bytes() const { return bytes_; }
  void shrink(Bytes);          // gives the rest back
  void absorb(Reservation&&);  // of the same ledger; what it was for is not there any more
  // Says that the bytes are there, until they are given back.
  void hold();

  // What they are already stays as it is.
  void settle();
  void loosen();
  // In the child of a fork, before the ledger is told what is left.
  void settle_after_fork() { loose_ = false; }
  void forget_after_fork() { ledger_ = nullptr; }

 private:
  friend class Ledger;
  Reservation(Ledger& ledger, Bytes bytes) : ledger_(&ledger), bytes_(bytes) {}
  void give_back();
  [[nodiscard]] Bytes held(Bytes of) const { return held_ ? of : 0; }

  Ledger* ledger_ = nullptr;
  Bytes bytes_ = 0;
  bool loose_ = true;
  bool held_ = false;
};

class REPRISE_EXPORT Ledger {
 public:
  explicit Ledger(Bytes budget) : budget_(budget) {}

  // None: they do not fit at the moment.
  [[nodiscard]] std::optional<Reservation> try_reserve(Bytes);
  [[nodiscard]] bool fits(Bytes) const;

  [[nodiscard]] Bytes budget() const { return budget_; }
  [[nodiscard]] Bytes used() const;  // reserved
  [[nodiscard]] Bytes held() const;  // of these
  [[nodiscard]] Bytes peak() const;  // the most ever held
  void reset_peak();

  // What changes with everything that may make room.
  struct Version {
    std::uint64_t changes = 0;  // bytes came back, were settled or loosened
    std::uint64_t touches = 0;  // somebody said so
  };
  [[nodiscard]] Version version() const;
  // For what the ledger does not see.
  void touch();

  // Waits for a change since this version, as long as there is hope for one: loose bytes. Those with a hope of their
  // own wait for a touch as well, and without loose bytes, too. False: there is no hope.
  [[nodiscard]] bool wait_past(const Version&, bool own_hope = false);

  // See store_forks.h. In the child only `settled` bytes are left.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child(Bytes settled);

 private:
  friend class Reservation;
  void change(Bytes bytes, int loose, Bytes held);  // takes these off
  void hold(Bytes);

  const Bytes budget_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Bytes used_ = 0;
  Bytes held_ = 0;
  Bytes peak_ = 0;
  Version version_;
  std::int64_t loose_ = 0;  // reservations
};

}  // namespace reprise::internal
