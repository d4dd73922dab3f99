// Measures a step that does not fit: its peak and its trace, without the memory that the step needs.
//
//   reprise::Session session;
//   const reprise::Measurement measured = session.measure([&] {
//     loss_fn(model->forward(huge_batch()), target).backward();
//   });
//   std::cout << measured.peak << ", at best " << floor_of(measured.trace).bytes << '\n';
//   const reprise::Curve curve = make_curve(measured.trace, {});
//
// The function runs in a copy of the process (`fork`), so it has no side effects: parameters, gradients, optimizer and
// random generators are what they were, bit for bit. In the copy, tensors of 64 KiB and more that the function makes
// are fake: all of them share 256 MiB of memory, and what is written into one does not stay there. All operators run,
// on whatever they find. So the bytes, the workspaces of operators and the order of everything are those of a real
// step.
//
//  - The values are not: an operator that tells the program what is in a tensor that depends on fake ones (`item`,
//    `nonzero`, `masked_select`), or an operator that refuses such values, ends the measurement with an error that
//    names it. What was made before, as a batch, has its values. Whole numbers in fake tensors are zero, so that they
//    are valid indices.
//  - It runs on one thread, with the workspaces that operators have on one. The costs are measured as always; what only
//    moves bytes looks cheaper than it is, because the shared memory is partly in the processor's caches.
//  - What is written into tensors that were there before needs memory for a copy of them: leave the step of the
//    optimizer out.
//  - An operator that keeps addresses in its workspace and allocates more than the shared memory, as oneDNN's recurrent
//    layers can, ends the measurement with an error.
//  - Whether values could be packed is not known, so the trace has no tier for it.
//  - Threads of the program are not there in the copy: the function must not wait for one, as for a loader of data.
#pragma once

#include "reprise/export.h"
#include "reprise/torch/session.h"
#include "reprise/trace/trace.h"

namespace reprise {

struct Measurement {
  Bytes peak = 0;      // the most bytes that were live, with all that was live before
  double seconds = 0;  // CPU time of the thread
  Trace trace;         // of the longest stretch from an operator to the end of backward
};

// `Session::measure` throws MeasurementError if the function cannot be run without memory, and BadOption if this thread
// has an open step. The session itself is not changed, and learns nothing from it.
class REPRISE_EXPORT MeasurementError : public SessionError {
 public:
  using SessionError::SessionError;
};

}  // namespace reprise
