#include "torch/late_costs.h"

#include <algorithm>

#include "torch/libtorch.h"

namespace reprise::internal {

c10::Event LateCosts::now() const {
  c10::Event event(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // the other kind does not know the time
  event.record(libtorch::current_stream_of_accelerator(device_));
  return event;
}

void LateCosts::begin(Id moment) {
  drop();
  spans_.push_back({moment, now(), c10::Event(device_.type(), c10::EventFlag::BACKEND_DEFAULT)});
  open_ = true;
}

void LateCosts::end() {
  if (!std::exchange(open_, false)) return;
  spans_.back().to = now();
}

void LateCosts::drop() {
  if (std::exchange(open_, false)) spans_.pop_back();
}

std::optional<std::vector<std::pair<Id, float>>> LateCosts::read() const {
  const bool over = std::all_of(spans_.begin(), spans_.end(), [](const Span& span) { return span.to.query(); });
  if (!over) return std::nullopt;
  std::vector<std::pair<Id, float>> costs;
  for (const Span& span : spans_) {
    constexpr double microseconds = 1000;  // of a millisecond
    costs.emplace_back(span.moment, static_cast<float>(microseconds * span.from.elapsedTime(span.to)));
  }
  return costs;
}

}  // namespace reprise::internal
