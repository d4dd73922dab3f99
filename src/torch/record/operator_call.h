// One operator that is recorded, from its start to its end: what it is given, what it writes, what is saved in it and
// what it makes.
#pragma once

#include <ATen/record_function.h>
#include <c10/util/SmallVector.h>

#include <memory>

#include "torch/memory/arbiter.h"
#include "torch/recipes/random_tape.h"
#include "torch/values/recording.h"

namespace reprise::internal {

class OperatorCall {
 public:
  // Follows the recipes, or writes one. Before the operator runs.
  OperatorCall(const Arbiter&, std::shared_ptr<Recording>, const OperatorInfo&,
               c10::ArrayRef<const c10::IValue> inputs);
  ~OperatorCall();
  OperatorCall(const OperatorCall&) = delete;
  OperatorCall& operator=(const OperatorCall&) = delete;

  // Starts the clock. The operator is about to run; CPU time is a system call, for operators that take long.
  void start_clock(bool of_cpu);
  // Says that it does something that cannot be done again. On its thread, while it runs.
  void mark_not_replayable(const char* why) { why_not_replayable_ = why; }
  // Takes its results and what was saved in it. The operator has run.
  void end(const at::RecordFunction&);

  // ---- tensors that are saved in it, on its thread ----
  // Which value the storage holds shows when the operator has ended: the tensor belongs to that one then.
  void add_waiting(SavedTensor&, c10::StorageImpl*);
  void remove_waiting(SavedTensor&);

 private:
  // A storage that it writes into.
  struct Writing {
    c10::Storage storage;
    Id before = no_value;
    std::int16_t index = 0;  // among the operator's writes
    bool done = false;       // bound to the next version
  };

  [[nodiscard]] const Recipe& recipe() const { return r_.cursor().recipes().operators[op_]; }
  void record(const OperatorInfo&, c10::ArrayRef<const c10::IValue> inputs);
  void begin_writing(c10::ArrayRef<const c10::IValue> inputs);

  void note_cost();
  void take_results(const at::RecordFunction&);
  void take_result(const c10::IValue&, std::int16_t index);
  void take_tensor(const at::Tensor&, std::int16_t result, std::int16_t element);
  void take_writing(Writing&, const at::Tensor* result);
  Id take(c10::StorageImpl*, Output);
  [[nodiscard]] bool takes_expected(c10::StorageImpl*, Bytes, Output&);
  void add_output(c10::StorageImpl*, Output&);
  // False if the storage that the output is written into is kept already, for a version before this one.
  [[nodiscard]] bool keeps_more(const Output&) const;
  void fail();
  void refuse_replays(const char* gave, const char* why);
  void diverge_in_it(const char* what);
  [[nodiscard]] const char* cannot_be_drawn_again() const;
  void ask_policy(const at::RecordFunction&);
  void bind_waiting(bool failed);

  const std::shared_ptr<Recording> recording_;
  Recording& r_;
  const Id op_;
  draws::Recorder drawn_;
  c10::SmallVector<Writing, 1> writings_;
  c10::SmallVector<SavedTensor*, 4> waiting_;
  std::size_t outputs_seen_ = 0;
  const char* why_not_replayable_ = nullptr;
  bool cpu_clock_ = false;
  bool timed_on_device_ = false;
  double start_ = 0;
};

}  // namespace reprise::internal
