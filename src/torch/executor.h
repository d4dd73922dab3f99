// The executor: does what a plan says, for as long as the period matches.
//
// Everything it does is advice: if a value that the plan counts on was forgotten under pressure, it is rebuilt when it
// is asked for, and if a value does not pack this time, it is kept.
#pragma once

#include <memory>

#include "torch/recording.h"
#include "torch/script.h"

namespace reprise::internal {

class Executor {
 public:
  explicit Executor(std::shared_ptr<const Script> schedule) : schedule_(std::move(schedule)) {}

  [[nodiscard]] const Script& schedule() const { return *schedule_; }

  // Steps right before and right after a moment. May run operators, so not under the arbiter's lock.
  void before(Recording&, Id moment);
  void after(Recording&, Id moment);

  // Whether this event is the one the plan has at this moment.
  [[nodiscard]] bool expects(Id moment, std::uint64_t event) const {
    return moment < schedule_->moments() && schedule_->events[moment] == event;
  }
  // Whether the plan still counts on it.
  [[nodiscard]] bool keeps(Id value) const;
  // An operator has made this value.
  void made(Recording&, Id value, c10::StorageImpl*);

 private:
  void try_to_execute(Recording&, std::span<const Script::Step>);
  void execute(Recording&, std::span<const Script::Step>);

  std::shared_ptr<const Script> schedule_;
  Id moment_ = 0;
};

}  // namespace reprise::internal
