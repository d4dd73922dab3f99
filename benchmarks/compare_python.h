// PyTorch in a process of its own, compare_peers.py, which takes a step when it is asked to.
#pragma once

#include <sys/types.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

#include "training_figures.h"

namespace reprise::benchmarks {

// What the Python side answered instead of a result, or that it is gone.
struct PeerError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class PythonPeers {
 public:
  // With this Python; empty: with python3, or else the one of the project's .venv. Throws PeerError if none of them
  // imports torch.
  explicit PythonPeers(const std::string& python);
  ~PythonPeers();

  // "torch 2.13.0, Python 3.11.7"
  [[nodiscard]] const std::string& versions() const { return versions_; }

  // All throw PeerError.
  void use_model(const std::string& name);
  void prepare(const std::string& way);
  [[nodiscard]] Sample step(const std::string& way);

 private:
  class Child;
  nlohmann::json ask(const nlohmann::json& request);

  std::unique_ptr<Child> child_;
  std::string versions_;
};

}  // namespace reprise::benchmarks
