// Late costs: what the moments of a pass take on an accelerator. The host only gives it the work, which takes hardly
// any time; the device says how long it took when it has come so far, mostly after the pass.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "reprise/trace/trace.h"
#include "torch/memory/arbiter.h"
#include "torch/recipes/recipes.h"

namespace reprise::internal {

// Forward may go on while another thread runs backward of the same pass: a moment is the thread's that began it. A
// moment of another thread that has not ended by then is not measured, because the device does both in turn.
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
  // Begins that of an operator, on the accelerator that it reads from. Returns false if it is the CPU's. One that reads
  // nothing is taken for the device's.
  [[nodiscard]] bool begin(Id moment, const Recipes&, Id op);
  void end();
  void drop();
  // Drops the moment that is not over, on any thread. Nothing is measured any more.
  void close();
  // What the device is given in between, to recompute values, is no part of the moment.
  void pause();
  void go_on();

  // Returns the costs of all moments. Empty until the device is through with them. After close(). Never waits for the
  // device, but asks it: not under the arbiter's lock. What was read is kept here, under the lock.
  [[nodiscard]] std::optional<Costs> read() const;
  void set_costs(Costs costs) { costs_ = std::move(costs); }
  [[nodiscard]] const std::optional<Costs>& costs() const { return costs_; }

 private:
  struct Span {
    Id moment;
    c10::Event from, to;
  };
  using Lock = std::scoped_lock<std::mutex>;
  void begin_on(c10::Device, Id moment);
  // What has to be recorded on the device at the end of this thread's span; nothing: none is open.
  [[nodiscard]] std::optional<c10::Device> device_of_open();
  [[nodiscard]] bool is_own() const { return by_ == std::this_thread::get_id(); }
  // Removes the spans of the moment that is not over, and returns them: events are released outside of the lock.
  [[nodiscard]] std::vector<Span> take_unfinished();

  const c10::Device device_;
  std::mutex mutex_;                           // of what follows, up to `costs_`; nothing of others is called under it
  std::thread::id by_;                         // who began the last of them
  c10::Device present_{c10::DeviceType::CPU};  // of the last of them
  std::vector<Span> spans_;                    // those of a moment that was paused are its parts
  bool open_ = false;                          // the last of them has begun, and not ended
  bool paused_ = false;                        // the moment of the last one is not over
  bool closed_ = false;
  std::optional<Costs> costs_;
};

}  // namespace reprise::internal
