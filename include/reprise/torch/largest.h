// The largest batch, or the longest sequences, that train inside a session's budget.
//
//   reprise::Session session({.budget = 2_GiB});
//   const reprise::Largest largest = session.largest({.sizes = {4, 8}}, [&](std::int64_t batch) {
//     loss_fn(model->forward(data.narrow(0, 0, batch)), target.narrow(0, 0, batch)).backward();
//     optimizer.zero_grad();
//   });
//   std::cout << largest;
//
// The function is run for the given sizes, a few steps each, and recorded. From these traces the others are predicted
// and planned (plan/fit.h). Then one real step confirms the largest size that has a plan; if it does not keep the
// budget, which only the step itself can tell, smaller ones are tried. If it leaves more than an eighth of the budget
// free, the prediction is made again with that step in the place of the smallest one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "reprise/export.h"
#include "reprise/plan/fit.h"
#include "reprise/torch/session.h"

namespace reprise {

struct LargestOptions {
  // The sizes to record, two or more: small ones that fit for certain, but not 1, which many operators treat in a way
  // of its own. Two for a batch; three for the length of sequences, because attention grows with its square.
  std::vector<std::int64_t> sizes;
  // The largest size to look at. Empty: 64 times the largest of `sizes`.
  std::optional<std::int64_t> at_most = {};
  // The steps to record of each size. More: costs that are less disturbed. The first step of a training allocates
  // gradients and the optimizer's state, so that one is not enough.
  int steps = 3;
  // The time for planning all sizes together.
  std::chrono::duration<double> time_limit = std::chrono::seconds(30);
  // Called while it plans, with the share done (0 to 1) and the size that is planned for.
  std::function<void(double share, std::int64_t size)> progress = {};
  // Planning ends soon when any thread sets this to true, and the largest size that was found by then is confirmed.
  const std::atomic<bool>* cancel = nullptr;
};

struct Largest {
  std::int64_t size = 0;  // a step of this size kept the budget
  Bytes peak = 0;         // of that step
  double seconds = 0;     // CPU time of the thread in that step: the first of its size, without a plan
  // Sizes that were predicted to fit, but whose step ended with a BudgetError.
  std::vector<std::int64_t> refused;
  Fit fit;  // what was predicted for each size
};

// Returns the table of the fit, and what the real step said.
[[nodiscard]] REPRISE_EXPORT std::string to_text(const Largest&);
REPRISE_EXPORT std::ostream& operator<<(std::ostream&, const Largest&);

// `Session::largest` throws BadOption for fewer than two sizes, for steps below 2, for a session without a budget, and
// for a size of `sizes` that does not fit the budget; BadInput that names the first operator that differs if the
// program does something else at another size. Whatever the function throws but a BudgetError comes through.

}  // namespace reprise
