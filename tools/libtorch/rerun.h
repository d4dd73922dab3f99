// Checkpointing as frameworks offer it, by running the user's function again in backward: what `reprise train` and
// `./bench` compare Reprise with, and one of the traps of tests/torch.
//
// A region keeps only its inputs. When backward reaches it, the user's function is run again as a whole, from the
// generator state it started with, and backward goes through that second graph. LibTorch has no such thing in C++, so
// this is the well-known construction of torch.utils.checkpoint (re-entrant form), made as cheap as it can be: the
// first run builds no graph, and nothing is alive longer than it has to be.
//
// It has the known faults, too: BatchNorm statistics are updated twice, and where one parameter is used in several
// regions its gradient is summed in another order.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

namespace reprise::tools {

using Tensors = std::vector<torch::Tensor>;

// Runs `body` on `inputs` and evicts everything in between. The body is called again in backward: what it refers to
// must be alive then.
[[nodiscard]] Tensors rerun(std::function<Tensors(const Tensors&)> body, const Tensors& inputs);

// The same with one tensor in and one out.
[[nodiscard]] torch::Tensor rerun(std::function<torch::Tensor(const torch::Tensor&)> body, const torch::Tensor& input);

}  // namespace reprise::tools
