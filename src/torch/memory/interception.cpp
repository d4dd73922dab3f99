#include "torch/memory/interception.h"

#include <c10/util/Exception.h>

#include <memory>
#include <utility>

#include "torch/libtorch/version_check.h"
#include "torch/memory/arbiter.h"

namespace reprise::internal {
namespace {

constinit std::mutex registering;  // one thread at a time, for all of them

// LibTorch warns whoever replaces a kernel that is there.
class ReplacingIsMeant final : c10::WarningHandler {
 public:
  ReplacingIsMeant() : guard_(this) {}
  void process(const c10::Warning&) override {}

 private:
  const c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace

// Called for every operator that there is and will be, under the dispatcher's lock: nothing can be registered there.
class Interception::Listener final : public c10::OpRegistrationListener {
 public:
  explicit Listener(Interception& interception) : interception_(interception) {}
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    const std::scoped_lock lock(interception_.brought_mutex_);
    interception_.brought_.push_back(op);
    interception_.any_brought_.store(true, std::memory_order_release);
  }
  // It was not looked at yet, and it may be gone the moment this returns.
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    const std::scoped_lock lock(interception_.brought_mutex_);
    std::erase(interception_.brought_, op);
  }

 private:
  Interception& interception_;
};

Interception::Interception(c10::DispatchKey key, KernelFor kernel_for) : key_(key), kernel_for_(kernel_for) {}

void Interception::update() {
  if (!any_brought_.load(std::memory_order_acquire)) return;
  Arbiter::expect_free("kernels are registered");
  const std::scoped_lock lock(registering);
  auto& dispatcher = c10::Dispatcher::singleton();
  if (!std::exchange(listening_, true)) {
    registrations_.push_back(dispatcher.addRegistrationListener(std::make_unique<Listener>(*this)));
  }
  const ReplacingIsMeant quiet;
  while (const auto op = take_brought()) {
    auto kernel = op->hasSchema() ? kernel_for_(*op) : std::nullopt;
    if (!kernel || !registered_.insert(c10::toString(op->operator_name())).second) continue;
    registrations_.push_back(
        dispatcher.registerImpl(op->operator_name(), key_, std::move(*kernel), std::nullopt, nullptr, "reprise"));
  }
}

bool Interception::install() {
  if (runs_as_compiled()) update();
  return true;
}

std::optional<c10::OperatorHandle> Interception::take_brought() {
  const std::scoped_lock lock(brought_mutex_);
  if (brought_.empty()) {
    any_brought_.store(false, std::memory_order_release);
    return std::nullopt;
  }
  const c10::OperatorHandle op = brought_.back();
  brought_.pop_back();
  return op;
}

void Interception::lock_for_fork() {
  registering.lock();
}
void Interception::unlock_after_fork() {
  registering.unlock();
}

}  // namespace reprise::internal
