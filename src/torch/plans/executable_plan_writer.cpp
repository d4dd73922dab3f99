#include "torch/plans/executable_plan_writer.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

ExecutablePlanWriter::ExecutablePlanWriter(ExecutablePlan& executable, Id moments, std::size_t values, Bytes budget)
    : executable_(executable),
      moments_(moments),
      room_(static_cast<std::size_t>(moments), budget),
      first_drop_(values, moments),
      last_drop_(values, executable.steps.max_size()),
      last_unpack_(values, executable.steps.max_size()) {
  const auto count = static_cast<std::size_t>(moments);
  executable.owned.assign(values, 0);
  executable.last_drop.assign(values, -1);
  executable.before.assign(count + 1, 0);
  executable.after.assign(count + 1, 0);
  executable.budget = budget;
}

// Of the moment to come, until it has begun.
void ExecutablePlanWriter::live(Bytes bytes) {
  Bytes& room = room_[std::min(running_ + 1, moments_ - 1)];
  room = std::min(room, executable_.budget - bytes);
}

void ExecutablePlanWriter::begin_before_next() {
  if (!std::exchange(right_after_, false) || running_ < 0) return;
  executable_.before[running_ + 1] = static_cast<std::uint32_t>(executable_.steps.size());
}

void ExecutablePlanWriter::add_before_next(ExecutablePlan::Step step) {
  begin_before_next();
  executable_.steps.push_back(step);
}

void ExecutablePlanWriter::run(Id moment) {
  begin_before_next();
  running_ = moment;
  executable_.after[moment] = static_cast<std::uint32_t>(executable_.steps.size());
  right_after_ = true;
}

void ExecutablePlanWriter::replay(ExecutablePlan::Replay replay) {
  add_before_next({ExecutablePlan::Step::Kind::replay, static_cast<Id>(executable_.replays.size())});
  executable_.replays.push_back(std::move(replay));
}

void ExecutablePlanWriter::drop(Id value) {
  last_drop_[value] = executable_.steps.size();
  first_drop_[value] = std::min(first_drop_[value], running_);
  executable_.last_drop[value] = running_;
  executable_.steps.push_back({ExecutablePlan::Step::Kind::drop, value});
}

void ExecutablePlanWriter::end_copy(Id value) {
  if (last_unpack_[value] < executable_.steps.size()) {
    executable_.steps[last_unpack_[value]].kind = ExecutablePlan::Step::Kind::unpack_last;
  }
}

void ExecutablePlanWriter::pack(Id value) {
  end_copy(value);
  add_before_next({ExecutablePlan::Step::Kind::pack, value});
}

void ExecutablePlanWriter::unpack(Id value) {
  last_unpack_[value] = executable_.steps.size();
  add_before_next({ExecutablePlan::Step::Kind::unpack, value});
}

void ExecutablePlanWriter::put(Id value) {
  add_before_next({ExecutablePlan::Step::Kind::put, value});
}

void ExecutablePlanWriter::get(Id value) {
  add_before_next({ExecutablePlan::Step::Kind::get, value});
}

void ExecutablePlanWriter::finish(std::span<const Id> values) {
  begin_before_next();
  executable_.after[moments_] = static_cast<std::uint32_t>(executable_.steps.size());
  for (const Id value : values) {
    end_copy(value);
    if (last_drop_[value] < executable_.steps.size())
      executable_.steps[last_drop_[value]].kind = ExecutablePlan::Step::Kind::end;
    if (executable_.last_drop[value] < 0) executable_.last_drop[value] = moments_;  // taken over, or never dropped
  }
}

}  // namespace reprise::internal
