// One training run: model, optimizer, data and generators, step by step. The same options give the same bits, plainly
// or in a session, with or without a break.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "libtorch/gpt_model.h"
#include "libtorch/training_text.h"
#include "reprise/torch/session.h"

namespace reprise::tools {

struct TrainerOptions {
  GptOptions model;
  std::int64_t batch = 32;
  double learning_rate = 1e-3;
  std::uint64_t seed = 1;
};

struct StepResult {
  float loss = 0;
  double seconds = 0;  // by the wall clock
  Bytes peak = 0;      // live bytes of LibTorch's CPU allocator, everything counted
};

class Trainer {
 public:
  // Seeds the process's default generator. Keeps the text by reference.
  Trainer(const TrainerOptions&, const Text&);

  // With a session, inside its budget; else plainly, where the first `rerun_blocks` are run again in backward.
  StepResult step(Session* session, std::int64_t rerun_blocks = 0);

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] const Gpt& model() const { return model_; }
  [[nodiscard]] std::int64_t parameters() const;

  // The bits of parameters and optimizer state, as a number that differs if any of them does.
  [[nodiscard]] std::uint64_t fingerprint() const;

  // Everything the next step depends on. The file is replaced in one go. Throws Error.
  void save(const std::filesystem::path&) const;
  // Throws BadInput if the file is not one of these, or was saved with other options.
  void load(const std::filesystem::path&);

 private:
  [[nodiscard]] std::string description() const;

  TrainerOptions options_;
  const Text& text_;
  Gpt model_;
  torch::optim::Adam optimizer_;
  at::Generator draws_;  // of the data
  std::int64_t steps_ = 0;
};

}  // namespace reprise::tools
