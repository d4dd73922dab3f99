// A training run whose steps can be repeated: every step starts from the same state, plain, with regions or in a
// session, and its result is compared bit by bit.
//
// Before a step, outside of what is timed: gradients become undefined; buffers (and with an optimizer parameters and
// its state) get the bits of the start; the generator is seeded anew. So one model serves all sides, and the live bytes
// at the start of a step, the level, are the same for all of them. With an optimizer its state exists from the start,
// as in every step of a long training but the first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "reprise/torch/session.h"
#include "training_bits.h"
#include "training_models.h"

namespace reprise::benchmarks {

struct StepResult {
  // Of forward, backward, optimizer, and the session's opening and closing.
  double seconds = 0;         // CPU time of the process; on a device, its own (training_device.h)
  double thread_seconds = 0;  // CPU time of the thread that trains
  double wall_seconds = 0;
  Bytes level = 0;  // live at the start
  Bytes peak = 0;   // the most that was live
};

// Everything that a step leaves behind, in two parts: a region may get the second wrong.
struct Outcome {
  Bits gradients;  // with the loss, the generator and, with an optimizer, the parameters and its state
  Bits buffers;
  // The name of the first tensor that differs; none: all are the same.
  [[nodiscard]] std::optional<std::string> first_difference(const Outcome&) const;
};

// Before anything else of LibTorch is used: all sides have the same heap, and as many threads.
void begin_process(int threads, bool denormals);

class Training {
 public:
  // `optimizer`: none, sgd (with momentum) or adam.
  Training(const std::string& model, const std::string& optimizer);
  ~Training();

  StepResult plain();
  StepResult rerun(const Regions&);
  StepResult reprise(Session&);

  // Of the next steps.
  void seed(std::uint64_t seed) { seed_ = seed; }
  [[nodiscard]] bool changing() const { return model_.changing; }

  // Of the last step.
  [[nodiscard]] Outcome outcome() const;

  // The next steps start where the last one ended. Without an optimizer every step starts from the same state anyway.
  void advance();

  [[nodiscard]] bool has_optimizer() const { return optimizer_ != nullptr; }

 private:
  StepResult run(const std::function<torch::Tensor()>& loss, Session* session);
  void reset();
  void prime_optimizer();
  [[nodiscard]] NamedTensors buffers() const;
  [[nodiscard]] NamedTensors trained() const;  // parameters and optimizer state; empty without an optimizer

  Model model_;
  std::uint64_t seed_ = 1;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  float loss_ = 0;
  Bits buffers_at_start_, trained_at_start_;
  std::int64_t optimizer_steps_ = 0;  // at the start; Adam's correction depends on it
};

}  // namespace reprise::benchmarks
