#include "torch/recipes/late_costs.h"

#include <algorithm>

#include "torch/libtorch/libtorch.h"

namespace reprise::internal {

namespace {

c10::Event now_on(c10::Device device) {
  c10::Event event(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // the other kind does not know the time
  event.record(libtorch::current_stream_of_accelerator(device));
  return event;
}

}  // namespace

bool LateCosts::begin(Id moment, const Recipes& recipes, Id op) {
  const auto device = recipes.accelerator_of_operator(op);
  if (!device && !recipes.references_of(op).empty()) return false;
  begin_on(device.value_or(device_), moment);
  return true;
}

void LateCosts::open(Id moment, c10::Event from) {
  spans_.push_back({moment, std::move(from), c10::Event(present_.type(), c10::EventFlag::BACKEND_DEFAULT)});
  open_ = true;
}

void LateCosts::leave_out() {
  if (!open_ && !paused_) return;
  open_ = paused_ = false;
  const Id moment = spans_.back().moment;
  while (!spans_.empty() && spans_.back().moment == moment) spans_.pop_back();
}

void LateCosts::begin_on(c10::Device device, Id moment) {
  c10::Event from = now_on(device);
  const std::lock_guard lock(mutex_);
  leave_out();
  owner_ = std::this_thread::get_id();
  present_ = device;
  open(moment, std::move(from));
}

std::optional<c10::Device> LateCosts::device_of_mine(const bool& state) {
  const std::lock_guard lock(mutex_);
  return mine() && state ? std::optional(present_) : std::nullopt;
}

void LateCosts::stop(bool is_over) {
  const auto device = device_of_mine(open_);
  if (!device) return;
  c10::Event to = now_on(*device);
  const std::lock_guard lock(mutex_);
  if (!mine() || !open_) return;
  spans_.back().to = std::move(to);
  open_ = false;
  paused_ = !is_over;
}

void LateCosts::end() {
  stop(true);
  const std::lock_guard lock(mutex_);
  if (mine()) paused_ = false;
}

void LateCosts::pause() {
  stop(false);
}

void LateCosts::go_on() {
  const auto device = device_of_mine(paused_);
  if (!device) return;
  c10::Event from = now_on(*device);
  const std::lock_guard lock(mutex_);
  if (mine() && std::exchange(paused_, false)) open(spans_.back().moment, std::move(from));
}

void LateCosts::drop() {
  const std::lock_guard lock(mutex_);
  leave_out();
}

std::optional<LateCosts::Costs> LateCosts::read() {
  Arbiter::expect_free("a device is asked how long it took");
  const std::lock_guard lock(mutex_);
  const bool over = std::all_of(spans_.begin(), spans_.end(), [](const Span& span) { return span.to.query(); });
  if (!over) return std::nullopt;
  Costs costs;
  for (const Span& span : spans_) {
    constexpr double microseconds = 1000;  // of a millisecond
    if (costs.empty() || costs.back().first != span.moment) costs.emplace_back(span.moment, 0.0f);
    costs.back().second += static_cast<float>(microseconds * span.from.elapsedTime(span.to));
  }
  return costs;
}

}  // namespace reprise::internal
