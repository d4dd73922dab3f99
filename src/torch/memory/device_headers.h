// Far memory: that of accelerators, which the host can neither read nor write. It has headers as all memory that is
// counted (meter.h), but they are in a table, by address.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <cstddef>

#include "torch/memory/meter.h"

namespace reprise::internal {

// The meter of an accelerator. What was freed while kernels of another stream may use it is *waiting*: it is live until
// whoever has the memory says that they are through with it.
class DeviceMeter : public Meter {
 public:
  explicit DeviceMeter(const char* device) : Meter(device) {}

  [[nodiscard]] Bytes waiting() const { return waiting_.load(std::memory_order_relaxed); }
  void add_waiting(Bytes bytes) { waiting_.fetch_add(bytes, std::memory_order_relaxed); }
  // Of so many that were waiting, no more than these are. Without effect if their number has changed since.
  void settle(Bytes were_waiting, Bytes still_waiting);

  // Bytes that nobody has reserved, and that are there; negative: some of them are not any more.
  void add_uncounted(Bytes bytes) { freed(-bytes); }

 private:
  std::atomic<Bytes> waiting_{0};
};

namespace far {

// Gives memory of an accelerator's allocator a header. Its deleter is ours from then on; its context has to be its
// address, and stays it. `rest`: so many bytes more are counted for it, and have no use.
void adopt(c10::DataPtr&, Bytes, Bytes rest, DeviceMeter&);
[[nodiscard]] c10::DeleterFnPtr deleter();
// nullptr: it has none.
[[nodiscard]] meter::Header* find(const c10::DataPtr&);
[[nodiscard]] meter::Header* find(void* address);
// Its allocator has taken the memory back without asking the deleter, who will not be asked any more.
void lose(void* address);

// See meter::take.
[[nodiscard]] c10::Storage take(meter::Header&, std::size_t bytes);

// The same memory as its allocator knows it, for as long as this lives: many ignore what has another's deleter.
class AsGiven {
 public:
  explicit AsGiven(const c10::DataPtr&);
  ~AsGiven();
  AsGiven(const AsGiven&) = delete;
  AsGiven& operator=(const AsGiven&) = delete;
  [[nodiscard]] const c10::DataPtr& memory() const { return memory_; }

 private:
  c10::DataPtr memory_;
};
// Kernels of another stream may use the memory from now on.
void mark_shared(meter::Header&);

// fork() copies only the thread that calls it: no other may be in the table then.
void lock_for_fork();
void unlock_after_fork();

}  // namespace far
}  // namespace reprise::internal
