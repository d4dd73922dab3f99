// Finds the device of a session that names none: where the parameters are, that is where the first leaf is that
// requires a gradient and that an operator of its steps reads. Nothing is recorded or limited before that. Where no
// accelerator is in use when the first step begins, it is the CPU from the start.
#pragma once

#include <ATen/core/ivalue.h>

#include "torch/session/thread_state.h"

namespace reprise::internal {

// An operator with these arguments is about to run in a step that seeks its device, whether it would be recorded or
// not: a parameter is mostly read through a view of it. Not under the arbiter's lock.
void find_device(ThreadState&, c10::ArrayRef<const c10::IValue> arguments);

}  // namespace reprise::internal
