// Late costs: what the moments of a period take on an accelerator. The host only gives it the work, which takes hardly
// any time; the device says how long it took when it has come so far, mostly after the period.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <optional>
#include <utility>
#include <vector>

#include "reprise/trace/trace.h"
#include "torch/recipes.h"

namespace reprise::internal {

class LateCosts {
 public:
  explicit LateCosts(c10::Device device) : device_(device) {}

  // A moment begins and ends here, on the current stream of the device. `drop`: it is not measured after all. Not under
  // the arbiter's lock.
  void begin(Id moment) { begin_on(device_, moment); }
  // The same for an operator, on the accelerator that it reads from. False: it is the CPU's, and nobody tells its cost.
  // One that reads nothing is taken for the device's.
  [[nodiscard]] bool begin(Id moment, const Recipes&, Id op);
  void end();
  void drop();
  // What the device is given in between, to rebuild values, is no part of the moment.
  void pause();
  void go_on();

  // Microseconds by moment, once the device is through with all of them; nothing before that. Never waits.
  [[nodiscard]] std::optional<std::vector<std::pair<Id, float>>> read() const;

 private:
  struct Span {
    Id moment;
    c10::Event from, to;
  };
  void begin_on(c10::Device, Id moment);
  void open(Id moment);

  const c10::Device device_;
  c10::Device present_{c10::DeviceType::CPU};  // of the last of them
  std::vector<Span> spans_;                    // those of a moment that was paused are its parts
  bool open_ = false;                          // the last of them has begun, and not ended
  bool paused_ = false;                        // the moment of the last one is not over
};

}  // namespace reprise::internal
