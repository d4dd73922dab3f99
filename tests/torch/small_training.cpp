#include "torch/small_training.h"

#include <limits>

#include "torch/here.h"

namespace reprise::testing {

SmallTraining::SmallTraining(int layers, std::int64_t width, std::int64_t batch) : batch_(batch) {
  torch::manual_seed(1);
  for (int i = 0; i < layers; ++i) {
    model_->push_back(torch::nn::Linear(width, width));
    model_->push_back(torch::nn::GELU());
    model_->push_back(torch::nn::Dropout(0.1));
    model_->push_back(torch::nn::Tanh());
  }
}

at::Tensor SmallTraining::loss(std::int64_t rows) {
  torch::manual_seed(2);
  const auto width = model_->parameters()[0].size(1);
  return model_->forward(torch::randn({rows > 0 ? rows : batch_, width})).pow(2).mean();
}

std::vector<Snapshot> SmallTraining::step(std::int64_t rows) {
  drop_gradients();
  const at::Tensor value = loss(rows);
  value.backward();
  std::vector<Snapshot> results = snapshots(gradients(*model_, {value}));
  results.push_back(generator_snapshot());
  return results;
}

const std::vector<Snapshot>& SmallTraining::expected(std::int64_t rows) {
  auto& there = expected_[rows];
  if (there.empty()) {
    there = step(rows);
    drop_gradients();
  }
  return there;
}

Bytes SmallTraining::peak() {
  measure();
  return peak_;
}

Bytes SmallTraining::level() {
  measure();
  return level_;
}

Bytes SmallTraining::budget(double share) {
  return level() + static_cast<Bytes>(share * static_cast<double>(peak() - level()));
}

void SmallTraining::measure() {
  if (peak_ > 0) return;
  (void)expected();  // and everything that LibTorch makes on first use
  level_ = meter_here().live();
  meter_here().mark_peak();
  (void)step();
  peak_ = meter_here().peak();
  drop_gradients();
}

SessionOptions within(Bytes budget, std::chrono::milliseconds planning_time) {
  SessionOptions options = options_here();
  options.budget = budget;
  options.planning_time = planning_time;
  options.planning_share = std::numeric_limits<double>::infinity();
  return options;
}

SessionOptions evicting_everything() {
  SessionOptions options = within(no_limit);
  options.evict_everything = true;
  options.verify = Verify::always;
  return options;
}

}  // namespace reprise::testing
