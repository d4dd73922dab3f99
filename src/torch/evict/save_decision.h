// The decision on a save: whether a value is kept, packed or evicted when autograd saves it. What is kept may go later:
// by the steps of a plan (record/plan_executor.h), or when memory is short (victims.h), where offloading is decided.
#pragma once

#include "reprise/torch/policy.h"

namespace reprise::internal {

// What the decision depends on.
struct Save {
  bool recomputable = true;        // see Values
  bool may_evict = true;           // the session has a budget, or evicts all the same
  bool evicts_everything = false;  // option of the session
  bool in_region = false;          // of checkpoint(), and no plan is followed
  bool dropped_by_plan = false;    // the plan that is followed has dropped the value already
  Choice choice = Choice::automatic;
};

enum class OnSave {
  hold,   // keep, and never evict: nothing brings the value back
  keep,   // until a plan or a lack of memory evicts it
  pack,   // keep packed, if it packs
  evict,  // at once
  leave,  // to the plan, which brings the value back
};

// Returns true if the value goes because checkpoint() was called. Only a policy can keep it.
[[nodiscard]] constexpr bool goes_with_region(const Save& save) {
  return save.in_region && save.choice != Choice::keep;
}

// Returns what happens to the value. The first rule that applies counts.
[[nodiscard]] constexpr OnSave decide(const Save& save) {
  if (!save.recomputable) return OnSave::hold;
  if (save.evicts_everything || goes_with_region(save)) return OnSave::evict;
  if (save.choice == Choice::evict && save.may_evict) return OnSave::evict;
  if (save.dropped_by_plan) return OnSave::leave;
  return save.choice == Choice::pack ? OnSave::pack : OnSave::keep;
}

}  // namespace reprise::internal
