// fork(), for stores.
//
// A child is a copy of the process with one thread, the one that called fork(). Before that, this thread takes the
// locks of all stores, so that their tables are in order in the child; each is held for a few instructions only, never
// while a codec, a rule or the file system is at work. In the child, what threads that are not there had taken is given
// back: the bytes they had reserved, the values they were moving or reading. So nobody waits for them.
//
// A folder belongs to the process that made it. A child reads the files of its parent, as long as they are there, and
// removes none of them; what it writes goes into a folder of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace reprise::internal {

// Which process this is. Numbers of processes come again, but not in a child.
struct ProcessId {
  pid_t number = 0;
  std::uint64_t forks = 0;  // between the first process and this one
  bool operator==(const ProcessId&) const = default;

  [[nodiscard]] static ProcessId now();
};

// Something with locks. All its locks are taken before a fork, and given back after it.
class HasLocks {
 public:
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent() = 0;
  // The locks are those of this thread; of what other threads did nothing is under way any more.
  virtual void after_fork_in_child() = 0;

 protected:
  HasLocks() = default;
  ~HasLocks() = default;
};

// As long as this lives, forks are told to it. The last member of what it is about.
class ToldOfForks {
 public:
  explicit ToldOfForks(HasLocks&);
  ~ToldOfForks();
  ToldOfForks(const ToldOfForks&) = delete;
  ToldOfForks& operator=(const ToldOfForks&) = delete;

  // For the handlers: calls it for all there are.
  static void tell_all(void (HasLocks::*what)());

 private:
  HasLocks& about_;
  ToldOfForks *before_ = nullptr, *after_ = nullptr;  // in a list of all
};

}  // namespace reprise::internal
