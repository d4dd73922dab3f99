// The models that ./bench live trains: gpt, gpt-sdpa, resnet, unet and lstm word for word as the Python peers have
// them, so that peaks and ratios can be compared; lstm-small, mlp and transformer beside them.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "live_region.h"

namespace reprise::benchmarks {

struct Model {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  // Forward to the loss, on one fixed batch.
  std::function<torch::Tensor()> loss;
  // The same with regions. Blocks are layers (gpt, gpt-sdpa, transformer, mlp), residual blocks (resnet) or cells
  // (lstm, lstm-small, always all of them). In unet a region is one level, whatever is asked for.
  std::function<torch::Tensor(const Regions&)> region_loss;
};

[[nodiscard]] std::vector<std::string> model_names();

// Parameters and batch come from the default generator: seed it before. Throws BadOption for a name there is not.
[[nodiscard]] Model make_model(const std::string& name);

}  // namespace reprise::benchmarks
