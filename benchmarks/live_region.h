// Region checkpointing as frameworks offer it: the rival that ./bench live --region measures.
//
// A region keeps only its inputs. When backward reaches it, the user's function is run again as a whole, from the
// generator state it started with, and backward goes through that second graph. LibTorch has no such thing in C++, so
// this is the well-known construction of torch.utils.checkpoint (re-entrant form), made as cheap as it can be: the
// first run builds no graph, and nothing is alive longer than it has to be.
//
// It has the known faults, too, and ./bench live reports them: BatchNorm statistics are updated twice, and where one
// parameter is used in several regions its gradient is summed in another order.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace reprise::benchmarks {

using Tensors = std::vector<torch::Tensor>;

// Runs `body` on `inputs` and forgets everything in between. The body is called again in backward: what it refers to
// must be alive then.
[[nodiscard]] Tensors region(std::function<Tensors(const Tensors&)> body, const Tensors& inputs);

// One block of a chain: a tensor in, a tensor out.
using Block = std::function<torch::Tensor(const torch::Tensor&)>;

// Which blocks of a chain are in regions.
struct Regions {
  std::int64_t every = 0;                                          // so many make one; 0: no regions
  std::int64_t blocks = std::numeric_limits<std::int64_t>::max();  // only the first so many are in regions
  [[nodiscard]] bool none() const { return every == 0 || blocks == 0; }
};

// Runs blocks one after the other.
[[nodiscard]] torch::Tensor run_chain(const std::vector<Block>& blocks, torch::Tensor x, const Regions&);

}  // namespace reprise::benchmarks
