// The models that are trained: gpt, gpt-sdpa, resnet, unet and lstm word for word as the Python peers have
// them, so that peaks and ratios can be compared; lstm-small, lstm-long, mlp and transformer beside them; and those
// whose steps differ (training_changing.h).
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "libtorch/rerun.h"

namespace reprise::benchmarks {

using tools::Tensors;

// Which blocks of a model are in regions that are run again in backward.
struct Regions {
  std::int64_t every = 0;                                          // blocks in one region; 0: no regions
  std::int64_t blocks = std::numeric_limits<std::int64_t>::max();  // the number of first blocks that are in regions
  [[nodiscard]] bool none() const { return every == 0 || blocks == 0; }
};

struct Model {
  std::string name;
  bool changing = false;  // its steps differ with the seed
  std::shared_ptr<torch::nn::Module> module;
  // Forward to the loss, on one fixed batch.
  std::function<torch::Tensor()> loss;
  // The same with regions. Blocks are layers (gpt, gpt-sdpa, transformer, mlp), residual blocks (resnet) or cells
  // (lstm, lstm-small, lstm-long, always all of them). In unet a region is one level, whatever is asked for.
  std::function<torch::Tensor(const Regions&)> region_loss;
};

// All of them; or those whose steps are all the same.
[[nodiscard]] std::vector<std::string> model_names();
[[nodiscard]] std::vector<std::string> unchanging_model_names();

// Parameters and batch come from the default generator: seed it before. Throws BadOption for a name there is not.
[[nodiscard]] Model make_model(const std::string& name);

}  // namespace reprise::benchmarks
