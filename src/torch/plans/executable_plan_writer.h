// Writes a executable: the actions of a plan, one after the other, become steps by moment.
//
// Drops that come right after a moment are done right after it; everything else, right before the next.
#pragma once

#include "torch/plans/executable_plan.h"

namespace reprise::internal {

class ExecutablePlanWriter {
 public:
  // For so many moments, and so many values.
  ExecutablePlanWriter(ExecutablePlan&, Id moments, std::size_t values, Bytes budget);

  // So many bytes are live during the action that comes next, which is no drop.
  void live(Bytes);
  void run(Id moment);
  void replay(ExecutablePlan::Replay);
  void drop(Id value);
  void pack(Id value);
  void unpack(Id value);
  void put(Id value);
  void get(Id value);

  // After the last action: the last drop of each of these values is its end, and its packed copies go with the last
  // unpacking of each.
  void finish(std::span<const Id> values);

  // The moment after which the plan drops it for the first time; never: behind the last one.
  [[nodiscard]] Id first_drop(Id value) const { return first_drop_[value]; }
  // By moment: how far live bytes stay below the budget, from the moment before until it ends.
  [[nodiscard]] const std::vector<Bytes>& room() const { return room_; }

 private:
  void add_before_next(ExecutablePlan::Step);
  void begin_before_next();
  void end_copy(Id value);

  ExecutablePlan& executable_;
  const Id moments_;
  Id running_ = -1;          // the moment that ran last
  bool right_after_ = true;  // only drops since then
  std::vector<Bytes> room_;
  std::vector<Id> first_drop_;
  std::vector<std::size_t> last_drop_, last_unpack_;  // by value: its index among the steps
};

}  // namespace reprise::internal
