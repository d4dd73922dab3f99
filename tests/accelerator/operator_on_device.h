// How an operator is run on the simulated accelerator, whatever it is.
//
// - A view is made on the host: its geometry is what the CPU's kernel makes of a CPU tensor on the same memory.
// - An operator in place, or one that is given its results, is launched as it is.
// - One that makes new tensors is launched into tensors allocated before; if nobody knows their shapes, the host waits.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>

namespace reprise::testing::accelerator {

// What the stream does: takes arguments, as CPU tensors, and leaves results, as the operator does with its stack.
using Work = std::function<void(torch::jit::Stack&)>;

// Calls the operator for these arguments. `work` computes it; without, that is the CPU's own kernel.
void run_on_device(const c10::OperatorHandle&, torch::jit::Stack*, Work work = nullptr);

}  // namespace reprise::testing::accelerator
