// Memory of the host below that of an accelerator: pinned, so that the device copies values there and back by itself,
// on two streams beside those that compute.
//
// A put waits, on its stream, for the stream that made the value; who drops the value makes that stream wait for the
// copy, and frees the memory in its order. A get waits for the stream that its memory was allocated on, and who needs
// the value makes his stream wait for it. So nothing here waits on the host, but for room: what is being got still has
// its bytes here, and a put that needs them waits until the device has come so far.
//
// Nothing of the device's is called under the arbiter's lock, nor under the one in here, which comes after it and is
// held for a few instructions. What is asked for there is begun by `settle`.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "reprise/report/summary.h"
#include "torch/memory/counted_device.h"
#include "torch/offload/learnt_line.h"
#include "torch/offload/value_tier.h"

namespace reprise::internal {

// All that was done so far.
struct HostTotals {
  Bytes put = 0, got = 0;
  Bytes peak = 0;  // of the bytes there

  // Of the last step, which began with `before`.
  void tell(Summary&, const HostTotals& before) const;
};

// Begin and end of a copy, by the device's clock.
struct CopySpan {
  c10::Event from, to;
};

struct HostTransfer {
  enum class State : std::uint8_t {
    to_put,   // nothing was given to the device yet
    putting,  // somebody is about to
    there,    // or will be, after `put`
    lost,     // there was no room
  };

  // ---- from the start ----
  std::size_t bytes = 0;
  std::optional<c10::Stream> made_on;
  // ---- under the lock ----
  State state = State::to_put;
  bool left = false;                   // nobody has a copy of it any more
  c10::Storage from;                   // the value's memory, until the put is over for those who use it
  c10::Storage there;                  // the host's
  c10::Storage got;                    // memory that it is being got into
  std::optional<c10::Stream> got_for;  // the stream that memory was allocated on
  std::shared_ptr<CopySpan> put, get;  // the last of each
  std::string error;                   // if it is lost
};

class HostMemory final : public ValueTier, public std::enable_shared_from_this<HostMemory> {
 public:
  // So many bytes below this accelerator; with `in_cpu` they count in the budget of the CPU, too. Measures how fast the
  // device copies. Throws BadOption if it has no pinned memory.
  [[nodiscard]] static std::shared_ptr<HostMemory> open(Bytes bytes, const CountedDevice&, bool in_cpu);
  ~HostMemory() override;

  [[nodiscard]] const CountedDevice& below() const { return device_; }
  [[nodiscard]] HostTotals totals() const;

  [[nodiscard]] TierTerms terms() const override;
  [[nodiscard]] std::shared_ptr<const TierCopy> put(c10::Storage, const std::optional<c10::Stream>& made_on) override;
  bool settle() override;
  [[nodiscard]] bool settle_next() override { return settle(); }
  void settle_all() override;
  [[nodiscard]] bool give_up_fetched() override;
  void end() noexcept override {}
  void lock_for_fork() override { mutex_.lock(); }
  void unlock_in_parent() override { mutex_.unlock(); }
  void unlock_in_child() override;

 private:
  friend class HostCopy;
  using Transfer = std::shared_ptr<HostTransfer>;
  using State = HostTransfer::State;
  using Lock = std::unique_lock<std::mutex>;
  // Memory of the device that nobody wants any more, while it is being copied from or to.
  struct GivenUp {
    c10::Storage memory;
    std::optional<c10::Stream> allocated_on;
    std::shared_ptr<CopySpan> by;  // nullptr: it is not
  };

  HostMemory(Bytes bytes, const CountedDevice&, bool in_cpu);
  void measure();

  // ---- of one transfer, without the lock ----
  void begin_put(HostTransfer&);
  void finish_put(HostTransfer&);
  void fetch(const Transfer&);
  [[nodiscard]] c10::Storage contents(const Transfer&);
  // Copies on this stream, after all that was given to the other one so far, and after that copy.
  [[nodiscard]] std::shared_ptr<CopySpan> copy(const c10::Storage& to, const c10::Storage& from, c10::Stream on,
                                               c10::Stream after, const CopySpan* and_after = nullptr) const;
  // What is given to these streams, and by this thread, from now on waits for it.
  void wait_on_device(const CopySpan&, const std::optional<c10::Stream>&) const;
  [[nodiscard]] c10::Stream here() const;

  // ---- room, without the lock ----
  // Pinned memory; empty: there is no room, even when the device has come as far as it can.
  [[nodiscard]] c10::Storage room_for(std::size_t bytes);
  [[nodiscard]] bool take_room(Bytes);
  void give_room_back(Bytes);
  [[nodiscard]] bool wait_for_room();

  // ---- with the lock ----
  // Nobody has a copy of it any more. The device may be at it, so `settle` frees what it has.
  void leave(Transfer);
  void give_up_put(HostTransfer&);
  bool give_up_fetched(HostTransfer&);

  // ---- what settles, without the lock ----
  [[nodiscard]] bool begin_and_finish_puts();
  [[nodiscard]] bool free_given_up();
  // The same when the arbiter's lock is free; with or without that one.
  void free_later();
  void free_what_left();
  void learn();

  const CountedDevice& device_;
  const bool in_cpu_;
  const c10::Stream puts_, gets_;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  Bytes used_ = 0;
  TierTerms terms_;
  LearntLine put_time_, get_time_;
  HostTotals totals_;
  std::vector<Transfer> unfinished_;  // puts, oldest first
  std::vector<std::weak_ptr<HostTransfer>> fetched_;
  std::vector<GivenUp> given_up_;
  std::vector<Transfer> left_;  // nobody has a copy any more: bytes that are free when the device has come so far
  struct Measured {
    std::shared_ptr<CopySpan> span;
    std::size_t bytes;
    bool put;
  };
  std::vector<Measured> measured_;  // that the device has not told yet
};

}  // namespace reprise::internal
