// Where the recordings of a thread come from: the session of its step, or the checkpoint region it is in.
#pragma once

#include <memory>

#include "torch/values/recording.h"

namespace reprise::internal {

class RecordingOwner {
 public:
  virtual ~RecordingOwner() = default;

  // A pass is about to begin: a device is asked what earlier ones took there. Not under the arbiter's lock.
  virtual void ask_device() {}
  // The recording of a pass that begins. Under the arbiter's lock.
  [[nodiscard]] virtual std::shared_ptr<Recording> begin_pass() = 0;
  // It has ended, with a backward: what was seen is remembered. Under the lock.
  virtual void end_pass(Recording&) = 0;
  [[nodiscard]] virtual RecordingContext& context() = 0;
};

}  // namespace reprise::internal
