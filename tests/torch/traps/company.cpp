#include "torch/traps/company.h"

#include <optional>
#include <vector>

#include "torch/here.h"

namespace reprise::testing {
namespace {

SessionOptions options_of_company() {
  SessionOptions options = options_here();
  options.evict_everything = true;
  options.verify = Verify::always;
  options.planning_time = std::chrono::milliseconds(0);
  options.name = "company";
  return options;
}

// The default type belongs to the process, and traps change it.
const at::TensorOptions numbers = at::TensorOptions().dtype(at::kFloat);

constexpr std::uint64_t kinds = 4;  // of rounds

}  // namespace

Company::Company() : session_(options_of_company()), ones_(at::ones({16, 32}, numbers)), thread_([this] { live(); }) {}

Company::~Company() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Company::come() {
  std::unique_lock lock(mutex_);
  asked_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return there_; });
}

void Company::go() {
  std::unique_lock lock(mutex_);
  asked_ = false;
  changed_.wait(lock, [this] { return !there_; });
}

Bytes Company::needs() {
  static const Bytes most = [this] {
    std::uint64_t wanted = rounds_;
    for (int warm = 0; warm < 2; ++warm) {  // LibTorch keeps some things that it makes on first use
      wanted += 4 * kinds;
      meter_here().mark_peak();
      come();
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return rounds_ >= wanted; });
      lock.unlock();
      go();
    }
    return meter_here().peak() - meter_here().live();
  }();
  return most + most / 4;
}

void Company::live() {
  std::unique_lock lock(mutex_);
  while (true) {
    there_ = false;
    changed_.notify_all();
    changed_.wait(lock, [this] { return ending_ || asked_; });
    if (ending_) return;
    there_ = true;
    changed_.notify_all();
    while (asked_ && !ending_) {
      lock.unlock();
      std::string complaint;
      try {
        round();
      } catch (const BudgetError&) {  // where a trap needs all there is; everything is as it was
      } catch (const std::exception& error) {
        complaint = error.what();
      }
      lock.lock();
      ++rounds_;
      if (complaint_.empty()) complaint_ = complaint;
      changed_.notify_all();
    }
  }
}

void Company::round() {
  switch (rounds_ % kinds) {
    case 0: (void)at::rand({static_cast<std::int64_t>(rounds_ % 37 + 1)}, numbers); break;
    case 1: {
      std::vector<at::Tensor> tensors;
      for (std::int64_t i = 1; i <= 4; ++i) tensors.push_back(at::empty({i * i * 64}, numbers).normal_());
      break;
    }
    case 2: train(); break;
    default: {
      const Step step = session_.step();
      train();
    }
  }
}

// The gradient of the sum of x * mask * noise is mask * noise.
void Company::train() {
  const at::Tensor x = ones_.clone().requires_grad_(true);
  const at::Tensor mask = at::bernoulli(ones_, 0.5), noise = at::randn_like(ones_);
  const at::Tensor expected = mask * noise;
  (x * mask * noise).sum().backward();
  if (!at::equal(x.grad(), expected)) throw Error("[company] the gradient is not the mask that was drawn");
}

}  // namespace reprise::testing
