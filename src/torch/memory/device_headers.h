// Headers of device memory: that of accelerators, which the host can neither read nor write. It has headers as all
// memory that is counted (meter.h), but they are in a table, by address.
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
  // Lowers the bytes that wait, if they are still as many as they were. Without effect if their number has changed
  // since.
  void update_waiting(Bytes were_waiting, Bytes still_waiting);

  // Counts bytes that are there although they were not reserved; negative: some of them are not any more.
  void add_uncounted(Bytes bytes) { freed(-bytes); }

 private:
  std::atomic<Bytes> waiting_{0};
};

namespace device_headers {

// Gives memory of an accelerator's allocator a header. Its deleter is ours from then on; its context has to be its
// address, and stays it. `rest`: bytes that are counted for it as well, and have no use.
void adopt(c10::DataPtr&, Bytes, Bytes rest, DeviceMeter&);
[[nodiscard]] c10::DeleterFnPtr deleter();
// Returns its header. Null if it has none.
[[nodiscard]] meter::Header* find(const c10::DataPtr&);
[[nodiscard]] meter::Header* find(void* address);
// Removes the header of memory that its allocator has taken back without asking the deleter, which will not be asked
// any more.
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
// Notes that kernels of another stream may use the memory from now on.
void mark_shared(meter::Header&);

// Hold the lock of the table during fork(), which copies only the thread that calls it.
void lock_for_fork();
void unlock_after_fork();

}  // namespace device_headers
}  // namespace reprise::internal
