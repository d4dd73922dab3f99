// A model with enough activations to evict some of, always trained on the same numbers: every step of the same batch
// gives the same gradients, plainly or in a session.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "reprise/torch/session.h"
#include "torch/traps/trap.h"

namespace reprise::testing {

// Enough time to plan its steps.
inline constexpr std::chrono::milliseconds soon(300);

class SmallTraining {
 public:
  explicit SmallTraining(int layers = 6, std::int64_t width = 64, std::int64_t batch = 256);

  // Forward and backward of a batch of so many rows, into fresh gradients; zero: the usual number. To be compared with
  // `expected`.
  std::vector<Snapshot> step(std::int64_t rows = 0);
  // Only the forward, with masks and numbers of its own.
  at::Tensor loss(std::int64_t rows = 0);
  // What a plain step gives.
  const std::vector<Snapshot>& expected(std::int64_t rows = 0);

  // level + share * (plain peak - level), of the usual batch.
  Bytes budget(double share);
  // Live bytes of a plain step at most, and before it.
  Bytes peak();
  Bytes level();

  torch::nn::Sequential& model() { return model_; }
  void drop_gradients() { model_->zero_grad(); }

 private:
  void measure();

  torch::nn::Sequential model_;
  std::int64_t batch_;
  std::map<std::int64_t, std::vector<Snapshot>> expected_;
  Bytes peak_ = 0, level_ = 0;
};

// Options with this budget. No time: no plans, the online policy context.
SessionOptions within(Bytes budget, std::chrono::milliseconds planning_time = std::chrono::milliseconds(0));
// Everything is evicted and recomputed, and compared.
SessionOptions evicting_everything();

// The type of what is thrown, and its contents to look at.
template <class Error, class Function>
std::optional<Error> thrown_by(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace reprise::testing
