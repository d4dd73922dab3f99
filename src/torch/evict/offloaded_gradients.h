// Gradients of parameters that wait in the tier below their device until backward is over.
//
// Once a gradient has been added to the `grad` of its parameter, it is not needed before the end of backward, as a
// rule; and at a small budget gradients are most of what is live. So when nothing can be evicted any more, the largest
// one is taken out of its parameter and put below. It is the same tensor that the parameter gets back, with its
// contents, before anything else is added to it, and at the end of backward; in between it has no gradient, as if
// backward had not got there. No code of the program ever sees a tensor without its contents.
//
// What has other handles stays, and so does what hooks of the program are called with. A reference to the `grad` of a
// parameter is no handle; so nothing is taken while code of the program's runs, but only while nodes of LibTorch's own
// do. All of it happens on the thread of the backward run.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <exception>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "torch/offload/transfer_tier.h"
#include "torch/values/recording_context.h"

namespace reprise::internal {

class OffloadedGradients {
 public:
  // Returns those of the backward run that is under way on this thread, of the outermost if there are several. Null if
  // none of them may wait.
  [[nodiscard]] static OffloadedGradients* of_this_thread();

  explicit OffloadedGradients(std::shared_ptr<RecordingContext>);
  // Brings them back. Without an error, whatever cannot be.
  ~OffloadedGradients();
  OffloadedGradients(const OffloadedGradients&) = delete;
  OffloadedGradients& operator=(const OffloadedGradients&) = delete;

  // Called around the node that LibTorch says is under way on this thread.
  void begin_node();
  void end_node();

  // Puts the largest one that counts there below that device. False: there is none.
  [[nodiscard]] bool put_largest(const Meter&);
  // Throws BudgetError if there is no room for all of them, MismatchError if one is not what was put, and
  // DiskError if one is lost; the others are there then.
  void bring_back();

 private:
  struct Gradient {
    at::Tensor parameter;
    std::optional<c10::Stream> made_on = {};    // the stream that it was added to on; none: it is on the CPU
    at::Tensor waiting = {};                    // without contents; undefined: it is where it belongs
    std::shared_ptr<const TierCopy> copy = {};  // if it is waiting
    bool stays = false;                         // it could not be put below
  };

  // Returns how many bytes putting it below would free at this device. Zero if it has to stay.
  [[nodiscard]] Bytes movable_bytes(const Gradient&, DeviceOrdinal) const;
  void bring_back(Gradient&);

  const std::shared_ptr<RecordingContext> context_;
  std::vector<Gradient> gradients_;                                    // that something was added to, in this run
  std::unordered_map<const c10::TensorImpl*, std::size_t> number_of_;  // in these, by parameter
  std::vector<bool> of_libtorch_;  // by node that is under way, the outermost first: its code is LibTorch's own
  bool verified_ = false;          // one has come back with the bits that were put
  std::exception_ptr error_;       // of bringing one back, where it could not be thrown
};

}  // namespace reprise::internal
