// Guests of the soak: threads that each do one kind of thing beside a training, over and over, and know whether it went
// right. A guest that is refused (no room in the budget, an allocation that a saboteur let fail) begins anew; whatever
// else goes wrong is a complaint.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "reprise/torch/session.h"

namespace reprise::testing {

// The gradient of the sum of x * mask is the mask: throws if it is not, bit for bit.
void expect_gradient(const at::Tensor& x, const at::Tensor& mask, const char* where);

// Whether an error is one of those that everybody has to live with here.
[[nodiscard]] bool is_refusal(const std::exception&);

class Guest {
 public:
  // `round` is called again and again, on a thread of its own, with the number of the round. It throws if something is
  // wrong.
  Guest(std::string name, std::function<void(std::uint64_t)> round, std::chrono::milliseconds pause = {});
  ~Guest();
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  // Ends after the present round; returns at once.
  void leave() { leaving_ = true; }
  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] std::uint64_t complaints() const { return complaints_; }
  [[nodiscard]] std::string first_complaint() const;

 private:
  void live();

  const std::string name_;
  const std::function<void(std::uint64_t)> round_;
  const std::chrono::milliseconds pause_;
  std::atomic<bool> leaving_{false}, gone_{false};
  std::atomic<std::uint64_t> rounds_{0}, refused_{0}, complaints_{0};
  mutable std::mutex mutex_;
  std::string complaint_;
  std::thread thread_;
};

// Operators that all guests together had replayed so far.
[[nodiscard]] std::uint64_t replays();
// To be called after a step: counts its replays.
void count_replays(const Session&);

// All kinds of them. Sessions get this budget.
[[nodiscard]] std::vector<std::unique_ptr<Guest>> all_guests(Bytes budget);

// The one that everything is about: dropout, batch norm, a hook in backward that writes a buffer, a loader of LibTorch
// with workers that draw, shapes that change from step to step, plans in the background.
[[nodiscard]] std::unique_ptr<Guest> trainer(Bytes budget);

}  // namespace reprise::testing
