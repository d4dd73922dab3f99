// What the examples with LibTorch share: the same training run plainly, in a session without a budget and in one with a
// budget, compared bit for bit. The training loops are in the examples.
#pragma once

#include <reprise/reprise.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <tuple>
#include <vector>

// What a training leaves behind, bit for bit. Not as tensors: they would count in the budget of the next training.
struct Outcome {
  std::vector<float> losses;
  std::vector<std::vector<char>> tensors;

  void add(const torch::Tensor& tensor) {
    const torch::Tensor plain = tensor.detach().contiguous();
    const char* const bytes = static_cast<const char*>(plain.const_data_ptr());
    tensors.emplace_back(bytes, bytes + plain.nbytes());
  }
  void add(const torch::nn::Module& model) {
    for (const torch::Tensor& parameter : model.parameters()) add(parameter);
    for (const torch::Tensor& buffer : model.buffers()) add(buffer);  // statistics of BatchNorm
  }
  [[nodiscard]] bool operator==(const Outcome&) const = default;
};

// Runs `train`, an Outcome(reprise::Session&), three times and prints how they compare. Returns the exit code: 1 if
// bits differ or the peak passes the budget, which is `share` of the peak without one.
template <class Train>
int compare(const Train& train, double share) try {
  reprise::Session off;
  off.enabled(false);  // its steps are plain LibTorch
  const Outcome plain = train(off);

  reprise::Session measuring;  // without a budget nothing is evicted, and the peak is that of a plain step
  const Outcome measured = train(measuring);
  const reprise::Bytes plain_peak = measuring.summary().peak();

  const auto budget = static_cast<reprise::Bytes>(share * static_cast<double>(plain_peak));
  // Planning is short, so that a training of a second has something of the plan.
  reprise::Session session({.budget = budget, .planning_time = std::chrono::milliseconds(200)});
  const Outcome limited = train(session);
  const reprise::Summary summary = session.summary();

  const bool identical = plain == measured && plain == limited;
  std::printf("%-16s  %12s  %12s  %12s\n", "", "peak", "first loss", "last loss");
  for (const auto& [name, peak, outcome] :
       {std::tuple{"plain", plain_peak, &plain}, {"within budget", summary.peak(), &limited}}) {
    std::printf("%-16s  %12s  %12.9f  %12.9f\n", name, reprise::format_bytes(peak).c_str(), outcome->losses.front(),
                outcome->losses.back());
  }
  std::printf("budget %s, %.2f of the plain peak; losses and final state identical: %s\n\n",
              reprise::format_bytes(budget).c_str(), share, identical ? "yes, bit for bit" : "NO");
  std::cout << summary << std::flush;
  return identical && summary.peak() <= budget ? 0 : 1;
} catch (const std::exception& error) {  // a budget that is too small: the error says what would be enough
  std::cerr << error.what() << '\n';
  return 1;
}

// The share that was asked for on the command line, if one was.
inline double share_of_peak(int argc, char** argv, double otherwise) {
  return argc > 1 ? std::atof(argv[1]) : otherwise;
}
