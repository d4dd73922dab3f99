// Training on the simulated accelerator, plainly and in a session, to be compared bit by bit.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reprise/torch/session.h"

namespace reprise::testing {

// The first of the two that there are.
[[nodiscard]] c10::Device device();

// What is trained: makes itself anew, the same every time, and gives the loss of one step.
struct Trained {
  std::vector<at::Tensor> parameters;
  std::function<at::Tensor()> loss;
};
using MakeTrained = std::function<Trained()>;

// A language model of four blocks, with attention and dropout.
[[nodiscard]] Trained small_gpt();
// Two branches, each on a stream of its own, that come together again.
[[nodiscard]] Trained two_streams();
// Operators drawn at random: products, activations, dropout, views, writes in place.
[[nodiscard]] Trained random_program(unsigned seed);

struct Outcome {
  std::vector<at::Tensor> bits;      // of every loss and gradient, on the host
  std::vector<std::uint64_t> draws;  // how far the device's generator went, after each step
  Bytes level = 0;                   // what was live between the steps
  Bytes peak = 0;                    // what the device had handed out at most
};

struct Run {
  int steps = 5;
  std::function<void(int step)> before_step = {};
  std::function<void(int step)> after_step = {};
};

// Without a session: plainly.
[[nodiscard]] Outcome train(const MakeTrained&, Session*, const Run& = {});
// Microseconds of the device for forward and backward of one step.
[[nodiscard]] double timed_step(const Trained&, Session*);
// What differs; empty: nothing.
[[nodiscard]] std::string difference(const Outcome& expected, const Outcome& seen);

}  // namespace reprise::testing
