// A small network written by hand, for chains: layers that are not linear, so that a wrong state gives a wrong
// gradient.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "reprise/chain/chain.h"

namespace reprise::testing {

using Numbers = std::vector<double>;

inline Numbers some_numbers(std::size_t count, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> between(-1, 1);
  Numbers result(count);
  for (double& number : result) number = between(random);
  return result;
}

// Layer k makes sin(x + 0.1 k) of each number, and adds its neighbour. Counts how often it is asked to.
struct Toy {
  mutable std::map<int, int> forwards, backwards;

  [[nodiscard]] Numbers forward(int layer, const Numbers& x) const {
    ++forwards[layer];
    Numbers y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] = std::sin(x[i] + 0.1 * layer) + 0.5 * x[(i + 1) % x.size()];
    }
    return y;
  }
  [[nodiscard]] Numbers backward(int layer, const Numbers& x, const Numbers& gradient) const {
    ++backwards[layer];
    Numbers result(x.size(), 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      result[i] += gradient[i] * std::cos(x[i] + 0.1 * layer);
      result[(i + 1) % x.size()] += 0.5 * gradient[i];
    }
    return result;
  }

  // Everything remembered, without a chain.
  struct Plain {
    Numbers result, gradient;
    std::vector<Numbers> states;
  };
  [[nodiscard]] Plain plain(const std::vector<int>& layers, const Numbers& input, const Numbers& gradient) const {
    Plain run{{}, gradient, {input}};
    for (const int layer : layers) run.states.push_back(forward(layer, run.states.back()));
    run.result = run.states.back();
    for (std::size_t k = layers.size(); k-- > 0;) run.gradient = backward(layers[k], run.states[k], run.gradient);
    forwards.clear();
    backwards.clear();
    return run;
  }

  [[nodiscard]] Chain<Numbers> chain(ChainLayers layers) const {
    return {std::move(layers), [this](int layer, const Numbers& x) { return forward(layer, x); },
            [this](int layer, const Numbers& x, Numbers gradient) { return backward(layer, x, gradient); }};
  }
};

inline std::vector<int> first_layers(int count) {
  std::vector<int> result;
  for (int k = 0; k < count; ++k) result.push_back(k);
  return result;
}

// Expects a ChainError that says this, among other things.
template <class Work>
void expect_chain_error(const Work& work, const std::string& part) {
  try {
    work();
    ADD_FAILURE() << "no error: " << part;
  } catch (const ChainError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace reprise::testing
