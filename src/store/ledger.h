// Counts the bytes of one tier. Bytes are reserved before they are allocated, and their reservation ends after they
// were freed. So the bytes held never pass the bytes reserved, and these never pass the budget.
//
// Reserved bytes are at rest or in transit. At rest they belong to a value in the store, and only evicting or removing
// it frees them. In transit, a thread works with them and will, without waiting for bytes of this tier, either free
// them or mark them as at rest. So a thread that lacks room may wait while bytes are in transit, and must not wait when
// none are.
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

// Reserves bytes as long as it lives. In transit at first. Not thread-safe.
class REPRISE_EXPORT Reservation {
 public:
  Reservation() = default;
  ~Reservation() { free(); }
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;

  [[nodiscard]] Bytes bytes() const { return bytes_; }
  void shrink(Bytes);          // frees the rest
  void absorb(Reservation&&);  // one of the same ledger whose memory or file is gone
  // Counts the bytes as held until they are freed.
  void hold();

  // Do nothing if that is the state already.
  void mark_at_rest();
  void mark_in_transit();
  // In the child of a fork, before Ledger::after_fork_in_child.
  void mark_at_rest_after_fork() { in_transit_ = false; }
  void detach_after_fork() { ledger_ = nullptr; }

 private:
  friend class Ledger;
  Reservation(Ledger& ledger, Bytes bytes) : ledger_(&ledger), bytes_(bytes) {}
  void free();
  [[nodiscard]] Bytes held(Bytes of) const { return held_ ? of : 0; }

  Ledger* ledger_ = nullptr;
  Bytes bytes_ = 0;
  bool in_transit_ = true;
  bool held_ = false;
};

class REPRISE_EXPORT Ledger {
 public:
  explicit Ledger(Bytes budget) : budget_(budget) {}

  // Empty if they do not fit at the moment.
  [[nodiscard]] std::optional<Reservation> try_reserve(Bytes);
  [[nodiscard]] bool fits(Bytes) const;

  [[nodiscard]] Bytes budget() const { return budget_; }
  [[nodiscard]] Bytes used() const;  // reserved
  [[nodiscard]] Bytes held() const;  // of these
  [[nodiscard]] Bytes peak() const;  // the most ever held
  void reset_peak();

  // Changes with everything that may make room.
  struct Version {
    std::uint64_t changes = 0;  // bytes were freed or changed their state
    std::uint64_t touches = 0;  // calls of touch()
  };
  [[nodiscard]] Version version() const;
  // Reports a change that the ledger does not see.
  void touch();

  // Waits for a change since this version. Returns false at once if there is none to wait for, because no bytes are in
  // transit. With `for_touch` a touch counts as a change, and is waited for in any case.
  [[nodiscard]] bool wait_past(const Version&, bool for_touch = false);

  // See store_forks.h. In the child only `at_rest` bytes are left.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child(Bytes at_rest);

 private:
  friend class Reservation;
  void change(Bytes bytes, int in_transit, Bytes held);  // subtracts these
  void hold(Bytes);

  const Bytes budget_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Bytes used_ = 0;
  Bytes held_ = 0;
  Bytes peak_ = 0;
  Version version_;
  std::int64_t in_transit_ = 0;  // reservations
};

}  // namespace reprise::internal
