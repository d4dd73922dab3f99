// Late costs: what the moments of a pass take on an accelerator. The host only gives it the work, which takes hardly
// any time; the device says how long it took when it has come so far, mostly after the pass.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <optional>
#include <utility>
#include <vector>

#include "reprise/trace/trace.h"
#include "torch/memory/arbiter.h"
#include "torch/recipes/recipes.h"

namespace reprise::internal {

class LateCosts {
 public:
  using Costs = std::vector<std::pair<Id, float>>;  // microseconds by moment

  explicit LateCosts(c10::Device device) : device_(device) {}
  ~LateCosts() { Arbiter::discard_all(std::move(spans_)); }  // events are the device's
  LateCosts(const LateCosts&) = delete;
  LateCosts& operator=(const LateCosts&) = delete;

  // A moment begins and ends here, on the current stream of the device. `drop`: it is not measured after all. Not under
  // the arbiter's lock.
  void begin(Id moment) { begin_on(device_, moment); }
  // The same for an operator, on the accelerator that it reads from. False: it is the CPU's, and nobody tells its cost.
  // One that reads nothing is taken for the device's.
  [[nodiscard]] bool begin(Id moment, const Recipes&, Id op);
  void end();
  void drop();
  // What the device is given in between, to recompute values, is no part of the moment.
  void pause();
  void go_on();

  // Of all moments, once the device is through with them; nothing before that. Never waits for it, but asks it: not
  // under the arbiter's lock. What it has told is kept here, under the lock.
  [[nodiscard]] std::optional<Costs> read() const;
  void tell(Costs costs) { told_ = std::move(costs); }
  [[nodiscard]] const std::optional<Costs>& told() const { return told_; }

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
  std::optional<Costs> told_;
};

}  // namespace reprise::internal
