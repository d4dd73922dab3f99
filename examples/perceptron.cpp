// Trains a multi-layer perceptron, written by hand, inside a byte budget.
//
//   perceptron [EPOCHS] [SHARE OF THE PEAK]
//
// Layers are plain loops over arrays. A chain runs them, evicts activations and replays them, so that no more than the
// budget is stored at any time. The same training without a budget has the very same losses.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plain_bar.h"
#include "reprise/chain/chain.h"
#include "reprise/trace/amount.h"

namespace {

constexpr int rows = 256, width = 32, layers = 24, classes = 2;
using Numbers = std::vector<float>;  // rows x columns

// One layer: y = x + tanh(x W + b), or x W + b for the first (from two columns) and the last (to the classes).
struct Layer {
  int in = width, out = width;
  bool residual = true;
  Numbers weight, bias, weight_gradient, bias_gradient;

  Layer(int columns_in, int columns_out, bool has_residual, std::mt19937& random)
      : in(columns_in), out(columns_out), residual(has_residual), weight(in * out), bias(out, 0.f) {
    std::normal_distribution<float> normal(0.f, 0.5f / std::sqrt(static_cast<float>(in)));
    for (float& w : weight) w = normal(random);
    clear();
  }

  void clear() {
    weight_gradient.assign(weight.size(), 0.f);
    bias_gradient.assign(bias.size(), 0.f);
  }

  Numbers linear(const Numbers& x) const {
    Numbers y(static_cast<std::size_t>(rows) * out);
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < out; ++o) y[r * out + o] = bias[o];
      for (int i = 0; i < in; ++i) {
        for (int o = 0; o < out; ++o) y[r * out + o] += x[r * in + i] * weight[i * out + o];
      }
    }
    return y;
  }

  Numbers forward(const Numbers& x) const {
    Numbers y = linear(x);
    if (residual) {
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] + std::tanh(y[i]);
    }
    return y;
  }

  // Adds to the gradients of the parameters and returns the one with respect to x.
  Numbers backward(const Numbers& x, const Numbers& gradient) {
    Numbers inner = gradient;
    if (residual) {
      const Numbers z = linear(x);
      for (std::size_t i = 0; i < z.size(); ++i) inner[i] *= 1 - std::tanh(z[i]) * std::tanh(z[i]);
    }
    Numbers result(static_cast<std::size_t>(rows) * in, 0.f);
    for (int r = 0; r < rows; ++r) {
      for (int o = 0; o < out; ++o) bias_gradient[o] += inner[r * out + o];
      for (int i = 0; i < in; ++i) {
        float sum = residual ? gradient[r * in + i] : 0.f;
        for (int o = 0; o < out; ++o) {
          weight_gradient[i * out + o] += x[r * in + i] * inner[r * out + o];
          sum += inner[r * out + o] * weight[i * out + o];
        }
        result[r * in + i] = sum;
      }
    }
    return result;
  }

  void step(float rate) {
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] -= rate * weight_gradient[i];
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] -= rate * bias_gradient[i];
    clear();
  }
};

// Two spirals, one for each class.
struct Data {
  Numbers points;
  std::vector<int> labels;
  Data() : points(rows * 2), labels(rows) {
    std::mt19937 random(7);
    std::normal_distribution<float> noise(0.f, 0.02f);
    for (int r = 0; r < rows; ++r) {
      labels[r] = r % 2;
      const float along = static_cast<float>(r) / rows, angle = 6 * along + 3.14159265f * static_cast<float>(r % 2);
      points[2 * r] = along * std::cos(angle) + noise(random);
      points[2 * r + 1] = along * std::sin(angle) + noise(random);
    }
  }
};

// The mean cross entropy, and its gradient with respect to the scores.
double loss_of(const Numbers& scores, const std::vector<int>& labels, Numbers& gradient) {
  gradient.resize(scores.size());
  double loss = 0;
  for (int r = 0; r < rows; ++r) {
    const float* score = &scores[r * classes];
    const float most = std::max(score[0], score[1]);
    const float sum = std::exp(score[0] - most) + std::exp(score[1] - most);
    loss += std::log(sum) + most - score[labels[r]];
    for (int c = 0; c < classes; ++c) {
      gradient[r * classes + c] = (std::exp(score[c] - most) / sum - static_cast<float>(c == labels[r])) / rows;
    }
  }
  return loss / rows;
}

struct Training {
  std::vector<double> losses;
  reprise::ChainStatistics statistics;  // of the last pass
};

// A budget of none: everything is remembered.
Training train(int epochs, std::optional<reprise::Bytes> budget) {
  const Data data;
  std::mt19937 random(1);
  std::vector<Layer> net;
  net.emplace_back(2, width, false, random);
  for (int k = 2; k < layers; ++k) net.emplace_back(width, width, true, random);
  net.emplace_back(width, classes, false, random);

  reprise::Chain<Numbers> chain(
      layers, [&](int layer, const Numbers& x) { return net[layer].forward(x); },
      [&](int layer, const Numbers& x, Numbers gradient) { return net[layer].backward(x, gradient); });
  if (budget) {
    chain.measure(data.points);
    chain.schedule(reprise::schedule::budget(*budget, std::chrono::seconds(1)));
  } else {
    chain.schedule(reprise::schedule::everything());
  }

  Training result;
  ProgressBar bar(epochs);
  chain.observer([&](const reprise::ChainProgress& progress) {
    bar.show(static_cast<double>(result.losses.size()), std::string(reprise::name(progress.phase)) + ", " +
                                                            std::to_string(progress.replays) + " replays, " +
                                                            reprise::format_bytes(progress.stored) + " stored");
  });
  for (int epoch = 0; epoch < epochs; ++epoch) {
    Numbers gradient;
    result.losses.push_back(loss_of(chain.forward(data.points), data.labels, gradient));
    chain.backward(gradient);
    for (Layer& layer : net) layer.step(0.05f);
  }
  result.statistics = chain.statistics();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 60;
  const double share = argc > 2 ? std::atof(argv[2]) : 0.35;

  const Training plain = train(epochs, std::nullopt);
  const auto budget = static_cast<reprise::Bytes>(share * static_cast<double>(plain.statistics.peak_stored));
  const Training limited = train(epochs, budget);

  const bool identical = plain.losses == limited.losses;
  std::printf("                  stored at most    forward calls    first loss     last loss\n");
  for (const auto& [name, one] : {std::pair{"everything", &plain}, {"within budget", &limited}}) {
    std::printf(
        "%-16s  %14s  %15llu  %12.9f  %12.9f\n", name, reprise::format_bytes(one->statistics.peak_stored).c_str(),
        static_cast<unsigned long long>(one->statistics.forward_calls), one->losses.front(), one->losses.back());
  }
  std::printf("budget %s, gradients included; losses identical: %s\n", reprise::format_bytes(budget).c_str(),
              identical ? "yes, bit for bit" : "NO");
  return identical && limited.statistics.peak_stored <= budget && plain.losses.back() < plain.losses.front() ? 0 : 1;
}
