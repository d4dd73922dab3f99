#include "torch/values/open_steps.h"

#include <algorithm>
#include <utility>

#include "torch/memory/counted_device.h"

namespace reprise::internal {

OpenSteps& OpenSteps::of_process() {
  static auto& one = *new OpenSteps;
  return one;
}

void OpenSteps::open(const RecordingContext& context) {
  const Arbiter lock;
  for (const auto& [device, budget] : context.devices()) {
    if (count(*device) != 0) continue;
    device->begin(lock);
    at_[device] = {device->meter().other(), 0};
  }
  open_.push_back(&context);
  set_limits(context);
}

void OpenSteps::close(const RecordingContext& context) {
  open_.erase(std::find(open_.begin(), open_.end(), &context));
  leave(context);
}

void OpenSteps::settle(RecordingContext& context, const CountedDevice& device, std::span<const Bytes> budgets) {
  const auto steps = std::erase(open_, &context);
  leave(context);
  context.settle(device);
  context.budgets(budgets);
  for (std::size_t i = 0; i < steps; ++i) open(context);
}

void OpenSteps::keep_only(const RecordingContext* context) {
  const Arbiter lock;
  const std::vector<const RecordingContext*> were_open = std::exchange(open_, {});
  if (context) open_.push_back(context);
  for (const auto& [device, at] : at_) {
    set_limit(*device);
    const auto was_here = [&, one = device](const RecordingContext* of_step) {
      return of_step->device_of(one->meter()) != untracked;
    };
    if (count(*device) == 0 && std::any_of(were_open.begin(), were_open.end(), was_here)) device->end(lock);
  }
}

bool OpenSteps::any_of(const RecordingContext& context) const {
  return std::find(open_.begin(), open_.end(), &context) != open_.end();
}

int OpenSteps::count(const CountedDevice& device) const {
  return static_cast<int>(std::count_if(open_.begin(), open_.end(), [&](const RecordingContext* context) {
    return context->device_of(device.meter()) != untracked;
  }));
}

// With other bytes O, plans for shares of L + (B - L) / n have values of at most (B - L) / n + L - O each: together
// with O that is no more than B, because O is never less than L.
Bytes OpenSteps::share(const CountedDevice& device, Bytes budget, int steps) const {
  const auto at = at_.find(&device);
  const Bytes level = at == at_.end() ? 0 : at->second.level;
  if (steps <= 1 || budget == no_limit || level >= budget) return budget;
  return level + (budget - level) / steps;
}

void OpenSteps::reserve(const CountedDevice& device, Bytes bytes) {
  Bytes& reserve = at_[&device].reserve;
  if (reserve == bytes) return;
  reserve = bytes;
  set_limit(device);
}

void OpenSteps::reserve_at_least(const CountedDevice& device, Bytes bytes) {
  reserve(device, std::max(at_[&device].reserve, bytes));
}

void OpenSteps::leave(const RecordingContext& context) const {
  const Arbiter lock;
  set_limits(context);
  for (const auto& [device, budget] : context.devices()) {
    if (count(*device) == 0) device->end(lock);
  }
}

void OpenSteps::set_limits(const RecordingContext& context) const {
  for (const auto& [device, budget] : context.devices()) set_limit(*device);
}

void OpenSteps::set_limit(const CountedDevice& device) const {
  using Share = RecordingContext::Share;
  const bool is_measured = std::any_of(open_.begin(), open_.end(), [&](const RecordingContext* context) {
    return context->share() == Share::measuring && context->device_of(device.meter()) != untracked;
  });
  Bytes smallest = meter::unlimited;
  for (const RecordingContext* const context : open_) {
    if (is_measured && context->share() != Share::none) continue;  // a plain step has to be able to run
    for (const auto& [one, budget] : context->devices()) {
      if (one == &device) smallest = std::min(smallest, budget);
    }
  }
  const auto at = at_.find(&device);
  const Bytes reserve = at == at_.end() ? 0 : at->second.reserve;
  device.limit(smallest, smallest == meter::unlimited ? 0 : std::min(reserve, smallest / 16));
}

}  // namespace reprise::internal
