// Where the recordings of a thread come from: the session of its step, or the checkpoint region it is in.
#pragma once

#include <memory>

#include "torch/values/recording.h"

namespace reprise::internal {

class Source {
 public:
  virtual ~Source() = default;

  // A period is about to begin: a device is asked what earlier ones took there. Not under the arbiter's lock.
  virtual void ask_device() {}
  // The recording of a period that begins. Under the arbiter's lock.
  [[nodiscard]] virtual std::shared_ptr<Recording> begin_period() = 0;
  // It has ended, with a backward: what was seen is remembered. Under the lock.
  virtual void end_period(Recording&) = 0;
  [[nodiscard]] virtual Rules& rules() = 0;
};

}  // namespace reprise::internal
