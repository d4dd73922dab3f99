// Late costs: what the moments of a period take on an accelerator. The host only gives it the work, which takes hardly
// any time; the device says how long it took when it has come so far, mostly after the period.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <optional>
#include <utility>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::internal {

class LateCosts {
 public:
  explicit LateCosts(c10::Device device) : device_(device) {}

  // A moment begins and ends here, on the current stream of the device. `drop`: it is not measured after all. Not under
  // the arbiter's lock.
  void begin(Id moment);
  void end();
  void drop();

  // Microseconds by moment, once the device is through with all of them; nothing before that. Never waits.
  [[nodiscard]] std::optional<std::vector<std::pair<Id, float>>> read() const;

 private:
  struct Span {
    Id moment;
    c10::Event from, to;
  };
  [[nodiscard]] c10::Event now() const;

  const c10::Device device_;
  std::vector<Span> spans_;
  bool open_ = false;  // the last of them has begun, and not ended
};

}  // namespace reprise::internal
