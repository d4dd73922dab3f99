// Fingerprints of values on accelerators. Reading contents there waits for the device, which nothing does under the
// arbiter's lock, where values are evicted: the contents are held here until the lock is free (Arbiter::after), and
// freed when they have been read.
//
// Under the arbiter's lock, unless it says otherwise.
#pragma once

#include <c10/core/Storage.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "torch/values/bindings.h"
#include "torch/values/device_options.h"
#include "torch/values/pending.h"

namespace reprise::internal {

// Those of one recording.
class DeviceFingerprints : public std::enable_shared_from_this<DeviceFingerprints> {
 public:
  DeviceFingerprints(const Bindings& bindings, const Pending& pending, std::span<const LimitedDevice> devices)
      : devices_(devices.begin(), devices.end()), bindings_(&bindings), pending_(pending) {}

  // Holds contents that are evicted, until saved tensors that wait for them have fingerprints. What the device throws
  // is thrown again where the value is asked for (SavedTensor::unread), and by Arbiter::unlock.
  void read_later(c10::Storage contents, const std::optional<c10::Stream>& made_on);
  // Has contents read that are held still: nothing can be read while a graph is captured.
  void read_held() {
    if (!held_.empty() && !will_read_) read_when_free();
  }
  // Drops what is held, because the values end.
  void end();

 private:
  struct Unread {
    c10::Storage contents;
    std::optional<c10::Stream> made_on;
    std::vector<View> views;
  };

  void read_when_free();
  [[nodiscard]] std::vector<SavedTensor*> waiting_for(c10::StorageImpl*) const;
  [[nodiscard]] std::vector<Unread> take();
  // Without the lock.
  void read();
  void read(const Unread&);

  const std::vector<LimitedDevice> devices_;
  const Bindings* bindings_;  // null: the values have ended
  const Pending& pending_;
  std::vector<Unread> held_;  // of which no views are known yet
  bool will_read_ = false;    // when the lock is free
};

// Throws what a kernel threw, if that is why contents differ. Waits for the device, without the lock.
void expect_no_failure(const c10::Storage&);

}  // namespace reprise::internal
