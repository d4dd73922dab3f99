#include "torch/recipes/device_timing.h"

#include <algorithm>

#include "torch/libtorch/libtorch.h"

namespace reprise::internal {

namespace {

c10::Event event_of(c10::Device device) {
  return c10::Event(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // the other kind does not know the time
}

c10::Event now_on(c10::Device device) {
  c10::Event event = event_of(device);
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

void LateCosts::begin_on(c10::Device device, Id moment) {
  Span span{moment, now_on(device), event_of(device)};
  std::vector<Span> dropped;
  {
    const Lock lock(mutex_);
    if (closed_) return;
    dropped = take_unfinished();
    spans_.push_back(std::move(span));
    by_ = std::this_thread::get_id();
    present_ = device;
    open_ = true;
  }
}

std::optional<c10::Device> LateCosts::device_of_open() {
  const Lock lock(mutex_);
  return open_ && is_own() ? std::optional(present_) : std::nullopt;
}

void LateCosts::end() {
  if (const auto device = device_of_open()) {
    c10::Event now = now_on(*device);
    const Lock lock(mutex_);
    if (!open_ || !is_own()) return;  // another thread has begun by now
    std::swap(spans_.back().to, now);
    open_ = false;
  }
  const Lock lock(mutex_);
  if (is_own()) paused_ = false;
}

std::vector<LateCosts::Span> LateCosts::take_unfinished() {
  std::vector<Span> unfinished;
  if (!open_ && !paused_) return unfinished;
  open_ = paused_ = false;
  const Id moment = spans_.back().moment;
  while (!spans_.empty() && spans_.back().moment == moment) {
    unfinished.push_back(std::move(spans_.back()));
    spans_.pop_back();
  }
  return unfinished;
}

void LateCosts::drop() {
  std::vector<Span> dropped;
  const Lock lock(mutex_);
  if (is_own()) dropped = take_unfinished();
}

void LateCosts::close() {
  std::vector<Span> dropped;
  {
    const Lock lock(mutex_);
    closed_ = true;
    dropped = take_unfinished();
  }
  Arbiter::discard_all(std::move(dropped));
}

void LateCosts::pause() {
  if (!device_of_open()) return;
  end();
  const Lock lock(mutex_);
  paused_ = is_own() && !closed_;
}

void LateCosts::go_on() {
  std::optional<std::pair<c10::Device, Id>> paused;
  {
    const Lock lock(mutex_);
    if (paused_ && is_own()) paused.emplace(present_, spans_.back().moment);
  }
  if (!paused) return;
  Span span{paused->second, now_on(paused->first), event_of(paused->first)};
  const Lock lock(mutex_);
  if (!paused_ || !is_own()) return;
  spans_.push_back(std::move(span));
  paused_ = false;
  open_ = true;
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
