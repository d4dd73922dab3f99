#include "torch/plans/script_writer.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

ScriptWriter::ScriptWriter(Script& script, Id moments, std::size_t values, Bytes budget)
    : script_(script),
      moments_(moments),
      room_(static_cast<std::size_t>(moments), budget),
      first_drop_(values, moments),
      last_drop_(values, script.steps.max_size()),
      last_unpack_(values, script.steps.max_size()) {
  const auto count = static_cast<std::size_t>(moments);
  script.owned.assign(values, 0);
  script.last_drop.assign(values, -1);
  script.before.assign(count + 1, 0);
  script.after.assign(count + 1, 0);
  script.budget = budget;
}

// Of the moment to come, until it has begun.
void ScriptWriter::live(Bytes bytes) {
  Bytes& room = room_[std::min(running_ + 1, moments_ - 1)];
  room = std::min(room, script_.budget - bytes);
}

void ScriptWriter::begin_before_next() {
  if (!std::exchange(right_after_, false) || running_ < 0) return;
  script_.before[running_ + 1] = static_cast<std::uint32_t>(script_.steps.size());
}

void ScriptWriter::add_before_next(Script::Step step) {
  begin_before_next();
  script_.steps.push_back(step);
}

void ScriptWriter::run(Id moment) {
  begin_before_next();
  running_ = moment;
  script_.after[moment] = static_cast<std::uint32_t>(script_.steps.size());
  right_after_ = true;
}

void ScriptWriter::replay(Script::Replay replay) {
  add_before_next({Script::Step::Kind::replay, static_cast<Id>(script_.replays.size())});
  script_.replays.push_back(std::move(replay));
}

void ScriptWriter::drop(Id value) {
  last_drop_[value] = script_.steps.size();
  first_drop_[value] = std::min(first_drop_[value], running_);
  script_.last_drop[value] = running_;
  script_.steps.push_back({Script::Step::Kind::drop, value});
}

void ScriptWriter::end_copy(Id value) {
  if (last_unpack_[value] < script_.steps.size()) {
    script_.steps[last_unpack_[value]].kind = Script::Step::Kind::unpack_last;
  }
}

void ScriptWriter::pack(Id value) {
  end_copy(value);
  add_before_next({Script::Step::Kind::pack, value});
}

void ScriptWriter::unpack(Id value) {
  last_unpack_[value] = script_.steps.size();
  add_before_next({Script::Step::Kind::unpack, value});
}

void ScriptWriter::put(Id value) {
  add_before_next({Script::Step::Kind::put, value});
}

void ScriptWriter::get(Id value) {
  add_before_next({Script::Step::Kind::get, value});
}

void ScriptWriter::finish(std::span<const Id> values) {
  begin_before_next();
  script_.after[moments_] = static_cast<std::uint32_t>(script_.steps.size());
  for (const Id value : values) {
    end_copy(value);
    if (last_drop_[value] < script_.steps.size()) script_.steps[last_drop_[value]].kind = Script::Step::Kind::end;
    if (script_.last_drop[value] < 0) script_.last_drop[value] = moments_;  // taken over, or never dropped
  }
}

}  // namespace reprise::internal
