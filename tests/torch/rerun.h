// Checkpointing as others do it, by running the user's function again in backward: a node with a graph of its own
// inside a session's graph.
#pragma once

#include <torch/torch.h>

#include <functional>

namespace reprise::testing {

at::Tensor rerun_in_backward(std::function<at::Tensor(at::Tensor)> function, const at::Tensor& x);

}  // namespace reprise::testing
