#include "torch/values/recordings.h"

#include <algorithm>

namespace reprise::internal {

Recordings& Recordings::of_process() {
  static auto& one = *new Recordings;
  return one;
}

std::uint32_t Recordings::add(Recording& recording, Bindings& bindings) {
  if (++last_ == 0) ++last_;  // zero is no recording's
  all_.push_back(&recording);
  bindings_.emplace_back(last_, &bindings);
  return last_;
}

void Recordings::remove(const Recording& recording) {
  const auto device = std::find(all_.begin(), all_.end(), &recording);
  bindings_.erase(bindings_.begin() + (device - all_.begin()));
  all_.erase(device);
}

Bindings* Recordings::bindings_of(std::uint32_t number) const {
  for (const auto& [one, bindings] : bindings_) {
    if (one == number) return bindings;
  }
  return nullptr;
}

}  // namespace reprise::internal
