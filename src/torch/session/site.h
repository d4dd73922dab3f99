// A checkpoint site: a place of the program where regions begin, with the recipes of the last call at it. The next call
// follows them.
#pragma once

#include <atomic>
#include <memory>

#include "torch/session/recording_owner.h"

namespace reprise::internal {

class Site final : public RecordingOwner {
 public:
  Site();

  [[nodiscard]] std::shared_ptr<Recording> begin_pass() override;
  void end_pass(Recording&) override {}  // a region has no steps, and nothing is planned
  [[nodiscard]] RecordingContext& context() override { return *context_.load(std::memory_order_acquire); }

  // A region is about to begin. From the first time that accelerators are in use, values there are evicted, too, if
  // they can be counted; what was recorded so far is not followed any more. Not under the arbiter's lock.
  void look_for_devices();
  // The region has ended. Under the arbiter's lock.
  void end_region(Recording&);

 private:
  std::shared_ptr<RecordingContext> of_cpu_, of_all_;  // the second: none yet
  std::atomic<RecordingContext*> context_;             // one of them
  std::atomic<bool> looks_ = true;                     // there may be accelerators that are not among its devices
  std::shared_ptr<Recipes> recipes_;                   // of the last call
};

}  // namespace reprise::internal
