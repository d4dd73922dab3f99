// fork(), for stores.
//
// A child is a copy of the process with one thread, the one that called fork(). Before that, this thread takes the
// locks of all stores, so that their tables are in order in the child; each is held for a few instructions only, never
// while a codec, a rule or the file system is at work. The child frees what threads that are not there had taken: bytes
// they had reserved, values they were moving or reading. So no thread waits for them.
//
// A folder belongs to the process that made it. A child reads the files of its parent, as long as they are there, and
// removes none of them; what it writes goes into a folder of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace reprise::internal {

// Identifies this process. Process numbers are used again, but not in a child.
struct ProcessId {
  pid_t number = 0;
  std::uint64_t forks = 0;  // between the first process and this one
  bool operator==(const ProcessId&) const = default;

  [[nodiscard]] static ProcessId now();
};

// An object with locks, all of which are taken before a fork and released after it.
class HasLocks {
 public:
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent() = 0;
  // This thread holds the locks; nothing that other threads did is under way any more.
  virtual void after_fork_in_child() = 0;

 protected:
  HasLocks() = default;
  ~HasLocks() = default;
};

// Calls an object's functions at every fork, as long as it lives. Has to be the last member of that object.
class ForkSubscription {
 public:
  explicit ForkSubscription(HasLocks&);
  ~ForkSubscription();
  ForkSubscription(const ForkSubscription&) = delete;
  ForkSubscription& operator=(const ForkSubscription&) = delete;

  // Calls a function of every subscribed object.
  static void call_all(void (HasLocks::*function)());

 private:
  HasLocks& subscriber_;
  ForkSubscription *before_ = nullptr, *after_ = nullptr;  // in the list of all
};

}  // namespace reprise::internal
