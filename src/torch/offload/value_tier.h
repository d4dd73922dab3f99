// A tier below the memory of a device: a disk (value_disk.h) below that of the CPU, memory of the host (host_memory.h)
// below that of an accelerator. Copies of values go there and come back beside the computation.
//
// A put is begun under the arbiter's lock, where nothing waits for files or devices: what it takes beside that is done
// by a thread of the tier, or when the lock is free: a tier leaves `settle` to Arbiter::after wherever there is more to
// do.
#pragma once

#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <memory>
#include <optional>

#include "torch/offload/tiers.h"
#include "torch/offload/value_copy.h"

namespace reprise::internal {

// A copy in a tier. When it ends, so does what it has there.
class TierCopy : public ValueCopy {
 public:
  // False: it could not be put, or not be got. There are no contents to be had from it.
  [[nodiscard]] virtual bool usable() const = 0;

  // Until it is there, or turns out to be of no use: from then on the memory of the value may be written, and freed. On
  // an accelerator it is what this thread gives to the device next that waits. Not under the arbiter's lock.
  virtual void finish_put() const = 0;
  // Begins to get it, into new memory. Throws BudgetError. Not under the arbiter's lock.
  virtual void fetch() const = 0;
  // Nobody counts any more on what was fetched.
  virtual void give_up_fetched() const = 0;
};

class ValueTier {
 public:
  virtual ~ValueTier() = default;
  ValueTier(const ValueTier&) = delete;
  ValueTier& operator=(const ValueTier&) = delete;

  [[nodiscard]] virtual TierTerms terms() const = 0;
  // Begins to put what is in this storage, which nobody may write into until that has ended.
  [[nodiscard]] virtual std::shared_ptr<const TierCopy> put(c10::Storage,
                                                            const std::optional<c10::Stream>& made_on) = 0;

  // Goes on with what was begun, and lets go of memory that has been put. False: there was none. Not under the
  // arbiter's lock.
  virtual bool settle() = 0;
  // The same, and if there is none, waits for what is to be put next. False: nothing is. Not under the arbiter's lock.
  [[nodiscard]] virtual bool settle_next() = 0;
  // Until no put and no get needs memory of the device any more. Not under the arbiter's lock.
  virtual void settle_all() = 0;
  // Lets go of what was got ahead of time and nobody has asked for. False: there is none.
  [[nodiscard]] virtual bool give_up_fetched() = 0;
  // The process ends. Not under the arbiter's lock.
  virtual void end() noexcept = 0;

  // See forks.h.
  virtual void lock_for_fork() = 0;
  virtual void unlock_in_parent() = 0;
  virtual void unlock_in_child() = 0;

 protected:
  ValueTier() = default;
};

}  // namespace reprise::internal
