// The operator table: what the recorder has to know about each overload, looked up once.
//
// Four kinds. A recorded operator becomes a recipe. A transparent one is composed of others, which are recorded
// instead. An ignored one makes nothing: a view, or no tensor at all, or contents that are not defined yet (empty). An
// opaque one is ignored together with everything it calls: a factory, whose result the user may fill through a pointer,
// or one that talks to other processes.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace reprise::internal {

// What an operator does to an argument.
enum class Access : std::uint8_t {
  read,
  write,      // reads the old contents and leaves new ones
  overwrite,  // leaves new contents that do not depend on the old ones, if it covers the whole storage
  statistic,  // leaves new contents that no result depends on: a replay gets a substitute, the contents are not
              // recomputed
};

struct OperatorInfo {
  enum class Kind : std::uint8_t { recorded, transparent, ignored, opaque };

  explicit OperatorInfo(c10::OperatorHandle);

  c10::OperatorHandle handle;
  std::string name;             // with its overload: aten::mul.Tensor
  std::uint32_t name_hash = 0;  // the same in every process
  Kind kind = Kind::recorded;
  c10::DispatchKeySet autocast;            // keys by which it is transparent while autocast has not been applied yet
  bool random = false;                     // draws from a generator
  int generator_argument = -1;             // -1: none, it draws from the default generator
  bool writes = false;                     // into any argument
  std::vector<Access> access;              // by argument, as declared
  std::vector<int> uninitialized_results;  // those with elements that it never writes: they are not compared

  // Operators that write running statistics, only in training, and some without declaring it: which argument says
  // whether it is training (-1: it always is), and which are the statistics.
  bool batch_norm = false;
  int training_argument = -1;
  int first_statistic = -1, last_statistic = -1;
  bool statistics_optional = false;  // a replay may pass none

  const char* why_not_replayable = nullptr;  // why it can never be replayed; nullptr: it can
  // On accelerators it may give other bits each time, unless LibTorch has to use deterministic algorithms.
  bool varies_on_accelerators = false;

  // The library that brought it is gone, and with it what `handle` refers to: it must not be called any more.
  mutable std::atomic<bool> gone = false;

  // An argument that is overwritten in training and else neither read nor written, though declared as written.
  int noise_argument = -1;

  // Returns whether this call is one in training, for operators that make a difference.
  [[nodiscard]] bool is_training(c10::ArrayRef<const c10::IValue> inputs) const;
};

// Returns what is known about an operator, for as long as the process lives. Null if it is not one of the dispatcher.
// Any thread.
[[nodiscard]] const OperatorInfo* find_operator(const at::RecordFunction&);
[[nodiscard]] const OperatorInfo& find_operator(const c10::OperatorHandle&);

// The overloads that are known. The address of the schema's own name identifies one, so nothing is hashed but a
// pointer. A library may go (Python's do), and leave the address to another one's operator.
class OperatorTable {
 public:
  // Returns the one of the process: never destroyed, because tensors may be freed after all static objects are gone.
  [[nodiscard]] static OperatorTable& of_process();

  // Removes operators that go, from now on. Before there are other threads: the dispatcher is locked for it, and a
  // child that is forked meanwhile could never exit.
  void listen();
  // Null if it is not known yet.
  [[nodiscard]] const OperatorInfo* find(const char* name);
  // Adds it, unless another one was added, which stays. It lives as long as the process. Not under the dispatcher's
  // lock.
  const OperatorInfo* add(const char* name, std::unique_ptr<const OperatorInfo>);
  // Removes it: the dispatcher is about to do so.
  void remove(const char* name);
  // Returns another number after each removal: what was found before may be another operator's by now.
  [[nodiscard]] std::uint64_t removals() const { return removals_.load(std::memory_order_acquire); }

  // Hold the lock of the table during fork(), which copies only the thread that calls it.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  class Listener;

  std::atomic<std::uint64_t> removals_ = 0;
  std::mutex mutex_;  // nothing of the dispatcher happens under it
  std::unordered_map<const char*, const OperatorInfo*> all_;
};

}  // namespace reprise::internal
