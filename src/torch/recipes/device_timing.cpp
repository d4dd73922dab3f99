#include "torch/recipes/device_timing.h"

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

void LateCosts::open(Id moment) {
  spans_.push_back({moment, now_on(present_), c10::Event(present_.type(), c10::EventFlag::BACKEND_DEFAULT)});
  open_ = true;
}

void LateCosts::begin_on(c10::Device device, Id moment) {
  drop();
  present_ = device;
  open(moment);
}

void LateCosts::end() {
  paused_ = false;
  if (!std::exchange(open_, false)) return;
  spans_.back().to = now_on(present_);
}

void LateCosts::drop() {
  if (!open_ && !paused_) return;
  open_ = paused_ = false;
  const Id moment = spans_.back().moment;
  while (!spans_.empty() && spans_.back().moment == moment) spans_.pop_back();
}

void LateCosts::pause() {
  if (!open_) return;
  end();
  paused_ = true;
}

void LateCosts::go_on() {
  if (std::exchange(paused_, false)) open(spans_.back().moment);
}

std::optional<LateCosts::Costs> LateCosts::read() const {
  Arbiter::expect_free("a device is asked how long it took");
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
