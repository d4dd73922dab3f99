// One replay: collects what has to be run so that values are there again, and runs it.
//
// What has to be run is collected first, with an explicit stack; then it is run in the order of the recording, and what
// nobody needs any more is freed at once. An operator in place takes over the storage of its input if it is the last
// one to need it. No lock is held while an operator runs: what it needs is pinned by handles.
#pragma once

#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch/recording.h"
#include "torch/replay_call.h"

namespace reprise::internal {

// A copy that a replay counted on turned out to be of no use, and is none any more: what it was of is to be rebuilt.
struct LostCopy : std::exception {};

class Replay {
 public:
  enum class Keep {
    what_is_awaited,  // by saved tensors
    outputs,          // that are wanted
    nothing,
    secret,  // and what is made belongs to no value, either
  };
  enum class From {
    what_is_there,
    leaves,  // nothing is taken from where it is that could be rebuilt
  };

  Replay(Recording& recording, Keep keep, From from = From::what_is_there) : r_(recording), keep_(keep), from_(from) {}

  // ---- collecting, under the arbiter's lock ----
  // What has to be run so that this value is there. Throws ChangedInputError.
  void collect(Id value);
  // The copy of this value, which nothing else has.
  void collect_copy(Id value) { pin(value, slots_[value]); }
  // This operator in any case.
  void collect_operator(Id op);
  // Operators that make values which saved tensors wait for out of what is collected: if that is dear, it is better
  // made once for all of them than once for each. False: there are none.
  bool collect_siblings();
  // Throws ChangedInputError if the operator cannot be run on what it ran on then.
  void check_inputs(Id op);
  // This value is asked for: it is not freed.
  void want(Id value) { slots_[value].wanted = true; }

  // ---- running, not under the lock ----
  // Throws BudgetError, MismatchError, LostCopy, DiskError if what was lost cannot be rebuilt, and what the operators
  // throw.
  void run();
  [[nodiscard]] c10::Storage take(Id value);
  // One operator, on inputs that the caller has brought and does not hold any more: it may write into them.
  [[nodiscard]] c10::Storage run_one(Id op, std::vector<std::pair<Id, c10::Storage>> inputs, Id output);

 private:
  struct Slot {
    c10::Storage storage;                   // pinned, or made here
    std::shared_ptr<const ValueCopy> copy;  // pinned: what it is to be had from, if it has to be
    int uses = 0;                           // by operators to come
    bool wanted = false;                    // by whoever asked
  };
  struct Written {
    std::int16_t index;  // among the operator's writes
    c10::Storage storage;
    Id before;
  };

  bool touch(Id value) { return slots_.try_emplace(value).second; }
  void pin(Id value, Slot&);
  void collect_open();
  void add_operator(Id op);
  void check_unchanged(Id op, int argument, Id value);
  [[nodiscard]] bool is_sibling(Id op) const;

  void run(Id op);
  [[nodiscard]] c10::IValue argument(const ReplayCall&, int index);
  [[nodiscard]] at::Tensor tensor(const ReplayCall&, int index, int element);
  [[nodiscard]] c10::Storage written(std::int16_t index, const Write&, Id before);
  [[nodiscard]] c10::Storage taken_over(Slot&, Id value);
  void take_outputs(Id op, const torch::jit::Stack& results);
  void take_output(const Output&, const torch::jit::Stack& results);
  [[nodiscard]] c10::Storage storage_of(const Output&, const torch::jit::Stack& results) const;
  [[nodiscard]] bool keeps(Id value, bool wanted) const;
  void free_inputs(const ReplayCall&);
  [[nodiscard]] c10::Storage copied_back(Id value);
  [[nodiscard]] c10::Storage contents_of_copy(Id value);

  Recording& r_;
  const Keep keep_;
  const From from_;
  std::vector<Id> operators_, open_;
  std::vector<bool> collected_;  // by operator
  std::unordered_map<Id, Slot> slots_;
  std::vector<Written> written_;  // by the operator that runs
};

}  // namespace reprise::internal
