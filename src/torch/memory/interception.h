// Interception: kernels of our own in front of others.
//
// Some operators get a kernel at a dispatch key that every thread includes from its start. So the keys of a thread are
// the same in a step, outside of it and in backward: whoever looks at them (guards of compiled code, higher-order
// operators, tracers) sees nothing of a step. The kernel itself passes the call on where there is nothing to do.
// (Record functions cannot do this: they see the call, but cannot change its arguments, and have all of them boxed for
// every operator.)
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reprise::internal {

class Interception {
 public:
  // Operators for which `kernel_for` has a kernel are called through that one, from the first update on. Made once for
  // a key, when the library is loaded, and never destroyed.
  using KernelFor = std::optional<c10::KernelFunction> (*)(const c10::OperatorHandle&);
  Interception(c10::DispatchKey, KernelFor kernel_for);

  // Sees to all operators, and later to those that libraries have brought since the last time. Cheap if there are none.
  // Any thread. The dispatcher has a lock of its own.
  void update();
  // Does the same if the LibTorch that runs is the one that this was compiled for; else nothing of it is touched.
  bool install();

  // fork() copies only the thread that calls it: no other may be registering then, with the dispatcher's lock. Comes
  // before all other locks of ours.
  static void lock_for_fork();
  static void unlock_after_fork();

 private:
  class Listener;
  // Takes one that was not looked at yet, if there is any.
  [[nodiscard]] std::optional<c10::OperatorHandle> take_brought();

  const c10::DispatchKey key_;
  const KernelFor kernel_for_;
  std::mutex brought_mutex_;  // of the next two; taken under the dispatcher's lock, which is never taken under it
  std::vector<c10::OperatorHandle> brought_;
  std::atomic<bool> any_brought_ = true;
  bool listening_ = false;
  std::set<std::string> registered_;
  std::vector<c10::RegistrationHandleRAII> registrations_;
};

}  // namespace reprise::internal
