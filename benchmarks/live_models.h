// The models that ./bench live trains: gpt, gpt-sdpa, resnet, unet and lstm word for word as the Python peers have
// them, so that peaks and ratios can be compared; lstm-small, mlp and transformer beside them.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace reprise::benchmarks {

struct Model {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  // Forward to the loss, on one fixed batch.
  std::function<torch::Tensor()> loss;
  // The same with regions of `every` blocks: layers (gpt, gpt-sdpa, transformer, mlp), residual blocks (resnet), cells
  // (lstm, lstm-small). In unet a region is one level, whatever `every` says.
  std::function<torch::Tensor(std::int64_t every)> region_loss;
};

[[nodiscard]] std::vector<std::string> model_names();

// Parameters and batch come from the default generator: seed it before. Throws BadOption for a name there is not.
[[nodiscard]] Model make_model(const std::string& name);

}  // namespace reprise::benchmarks
