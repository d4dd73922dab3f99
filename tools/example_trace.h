// A trace to try things on without a file.
#pragma once

#include "reprise/trace/trace.h"

namespace reprise::tools {

// One training step of a network like GPT-2 medium: 24 layers, 8 sequences of 512 tokens, Adam. Costs are milliseconds
// as on a workstation. Norms have two outputs; dropout masks may be packed to bits; residual sums take over the storage
// of an input; softmax has workspace; weights are held by the program; gradients and Adam's moments are other bytes.
[[nodiscard]] Trace example_trace();

}  // namespace reprise::tools
