// The steps that are open in the process, and the limits they put on the devices they are at: the smallest of their
// budgets. Under the arbiter's lock.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "torch/values/recording_context.h"

namespace reprise::internal {

class OpenSteps {
 public:
  // Returns the one of the process: never destroyed, because tensors may be freed after all static objects are gone.
  [[nodiscard]] static OpenSteps& of_process();

  // A step of the session with this context, at the devices and under the budgets that it has.
  void open(const RecordingContext&);
  void close(const RecordingContext&);
  // They have another device, and these budgets, from now on, and so have all steps of theirs that are open.
  void settle(RecordingContext&, const CountedDevice&, std::span<const Bytes> budgets);
  // nullptr: none.
  void keep_only(const RecordingContext*);

  [[nodiscard]] bool any_of(const RecordingContext&) const;
  [[nodiscard]] int count(const CountedDevice&) const;
  // What the plan of a step under this budget may count on if so many are open there: of what is not in use before the
  // first of them begins, each has the same part. Values of other steps are not among the other bytes that a plan knows
  // of.
  [[nodiscard]] Bytes share(const CountedDevice&, Bytes budget, int steps) const;

  // Bytes that are to stay free for packing while no plan accounts for them: so many, or at least so many.
  void reserve(const CountedDevice&, Bytes);
  void reserve_at_least(const CountedDevice&, Bytes);

 private:
  struct AtPlace {
    Bytes level = 0;  // other bytes when the first of the open steps began
    Bytes reserve = 0;
  };

  // A step of theirs is no longer open.
  void leave(const RecordingContext&) const;
  void set_limits(const RecordingContext&) const;
  void set_limit(const CountedDevice&) const;

  std::vector<const RecordingContext*> open_;
  std::map<const CountedDevice*, AtPlace> at_;  // where steps were open
};

}  // namespace reprise::internal
