#include "torch/interception.h"

#include <memory>
#include <utility>

#include "torch/arbiter.h"

namespace reprise::internal {
namespace {

constinit std::mutex registering;  // one thread at a time, for all of them

}  // namespace

// Told of every operator that there is and will be, under the dispatcher's lock: nothing can be registered there.
class Interception::Listener final : public c10::OpRegistrationListener {
 public:
  explicit Listener(Interception& interception) : interception_(interception) {}
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    const std::scoped_lock lock(interception_.brought_mutex_);
    interception_.brought_.push_back(op);
    interception_.any_brought_.store(true, std::memory_order_release);
  }
  void onOperatorDeregistered(const c10::OperatorHandle&) override {}

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
    registrations_.push_back(dispatcher.registerFallback(key_, c10::KernelFunction::makeFallthrough(), "reprise"));
    registrations_.push_back(dispatcher.addRegistrationListener(std::make_unique<Listener>(*this)));
  }
  std::vector<c10::OperatorHandle> brought;
  {
    const std::scoped_lock inner(brought_mutex_);
    brought = std::exchange(brought_, {});
  }
  for (const c10::OperatorHandle& op : brought) {
    auto kernel = op.hasSchema() ? kernel_for_(op) : std::nullopt;
    if (!kernel || !registered_.insert(c10::toString(op.operator_name())).second) continue;
    registrations_.push_back(
        dispatcher.registerImpl(op.operator_name(), key_, std::move(*kernel), std::nullopt, nullptr, "reprise"));
  }
  const std::scoped_lock inner(brought_mutex_);
  any_brought_.store(!brought_.empty(), std::memory_order_release);
}

void Interception::lock_for_fork() {
  registering.lock();
}
void Interception::unlock_after_fork() {
  registering.unlock();
}

}  // namespace reprise::internal
