// One replay: runs operators so that values are there again.
//
// What has to be run is collected first (replay_needs.h); then it is run in the order of the recording, and what is not
// needed any more is freed at once. An operator in place takes over the storage of its input if it is the last one to
// need it. No lock is held while an operator runs: what it needs is pinned by handles.
#pragma once

#include <utility>
#include <vector>

#include "torch/replay/replay_call.h"
#include "torch/replay/replay_needs.h"
#include "torch/values/recording.h"

namespace reprise::internal {

// A copy that a replay counted on turned out to be of no use, and is none any more: what it was of is to be recomputed.
struct LostCopy : std::exception {};

class Replay {
 public:
  enum class Keep {
    what_is_awaited,  // by saved tensors
    outputs,          // that are wanted
    nothing,
    secret,  // and what is made belongs to no value
  };
  using From = ReplayNeeds::From;

  Replay(Recording& recording, Keep keep, From from = From::what_is_there)
      : r_(recording), keep_(keep), needs_(recording, from) {}

  // Returns what it is to run, which is collected first.
  [[nodiscard]] ReplayNeeds& needs() { return needs_; }

  // ---- running ----
  // Throws BudgetError, MismatchError, LostCopy, DiskError if what was lost cannot be recomputed, and what the
  // operators throw.
  void run();
  [[nodiscard]] c10::Storage take(Id value);
  // Runs one operator, on inputs that the caller has brought and does not hold any more: it may write into them.
  [[nodiscard]] c10::Storage run_one(Id op, std::vector<std::pair<Id, c10::Storage>> inputs, Id output);

 private:
  struct Written {
    std::int16_t index;  // among the operator's writes
    c10::Storage storage;
    Id before;
  };

  void run(Id op);
  [[nodiscard]] c10::IValue argument(const ReplayCall&, int index);
  [[nodiscard]] at::Tensor tensor(const ReplayCall&, int index, int element);
  [[nodiscard]] c10::Storage written(std::int16_t index, const Write&, const ReplayCall::Input&);
  [[nodiscard]] c10::Storage taken_over(ReplayNeeds::Slot&, Id value);
  void take_outputs(Id op, const torch::jit::Stack& results);
  void take_output(const Output&, const torch::jit::Stack& results);
  [[nodiscard]] c10::Storage storage_of(const Output&, const torch::jit::Stack& results) const;
  [[nodiscard]] bool keeps(Id value, bool wanted) const;
  void free_inputs(const ReplayCall&);
  [[nodiscard]] c10::Storage copied_back(Id value);
  [[nodiscard]] c10::Storage contents_of_copy(Id value);

  Recording& r_;
  const Keep keep_;
  ReplayNeeds needs_;
  std::vector<Written> written_;  // by the operator that runs
};

}  // namespace reprise::internal
