// Company: a thread beside the tests that draws from the default generator, allocates, and trains.
//
// It is only there when it is asked to be. Then it does, over and over, what threads beside a training do: draws of
// various lengths, tensors of various sizes that come and go, and steps of a small training, plainly and in a session
// of its own. Its gradients are the masks that it drew, so it notices by itself if they are wrong. When it waits it
// holds nothing but constants, so that live bytes can be compared.
#pragma once

#include <ATen/ATen.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "reprise/torch/session.h"

namespace reprise::testing {

class Company {
 public:
  Company();
  ~Company();
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;

  // From now on it is at work; returns when it has begun.
  void come();
  // Returns when it waits.
  void go();
  // Room that it needs while it is there. Measured the first time, and for that it must not be there.
  [[nodiscard]] Bytes needs();
  // What went wrong with its own training; empty: nothing. Only while it waits.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  // How often it did something. Only while it waits.
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }

 private:
  void live();
  void round();
  void train();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false, there_ = false, ending_ = false;
  std::uint64_t rounds_ = 0;
  std::string complaint_;
  Session session_;
  const at::Tensor ones_;
  std::thread thread_;
};

// Company while this lives. nullptr: none.
class Present {
 public:
  explicit Present(Company* company) : company_(company) {
    if (company_) company_->come();
  }
  ~Present() {
    if (company_) company_->go();
  }
  Present(const Present&) = delete;
  Present& operator=(const Present&) = delete;

 private:
  Company* const company_;
};

}  // namespace reprise::testing
