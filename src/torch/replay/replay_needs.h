// What a replay needs: the operators that have to be run so that values are there again, and the values that they are
// run on, pinned by handles. It is collected with an explicit stack.
//
// Under the arbiter's lock while it is collected; after that it is the replay's own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "torch/values/recording.h"

namespace reprise::internal {

// Throws ChangedInputError if the operator cannot be run on what it ran on then.
void check_inputs(Recording&, Id op);
// Throws DiskError: nothing has this value any more.
[[noreturn]] void fail_lost(Recording&, Id value, const std::string& why);

class ReplayNeeds {
 public:
  enum class From {
    what_is_there,
    leaves,  // nothing is taken from where it is that could be recomputed
  };
  struct Slot {
    c10::Storage storage;                   // pinned, or made by the replay
    std::optional<c10::Stream> made_on;     // if it is pinned; the replay makes it on the current one
    std::shared_ptr<const ValueCopy> copy;  // pinned: what it is to be had from, if it has to be
    int uses = 0;                           // by operators to come
    bool wanted = false;                    // by whoever asked
  };

  ReplayNeeds(Recording& recording, From from) : r_(recording), from_(from) {}

  // ---- collecting ----
  // Collects what has to be run so that this value is there. Throws ChangedInputError.
  void collect(Id value);
  // Collects the copy of this value, which is the only one.
  void collect_copy(Id value) { pin(value, slots_[value]); }
  // Collects this operator in any case. Throws ChangedInputError.
  void collect_operator(Id op);
  // Collects this operator on inputs that the caller brings.
  void collect_alone(Id op);
  // Collects operators that make values which saved tensors wait for out of what is collected: if that is expensive, it
  // is better made once for all of them than once for each. False if there are none.
  bool collect_siblings();
  // Keeps this value from being freed, because it is asked for.
  void want(Id value) { slots_[value].wanted = true; }

  // ---- what was collected ----
  // In the order of the recording.
  [[nodiscard]] const std::vector<Id>& operators();
  [[nodiscard]] Slot& slot(Id value) { return slots_[value]; }
  // Returns its slot. Null if it is not needed.
  [[nodiscard]] Slot* find(Id value);

 private:
  [[nodiscard]] bool touch(Id value) { return slots_.try_emplace(value).second; }
  void pin(Id value, Slot&);
  void collect_open();
  void add_operator(Id op);
  [[nodiscard]] bool is_sibling(Id op) const;

  Recording& r_;
  const From from_;
  std::vector<Id> operators_, open_;
  std::vector<bool> collected_;  // by operator
  std::unordered_map<Id, Slot> slots_;
};

}  // namespace reprise::internal
