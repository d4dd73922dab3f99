#include "torch/session/site.h"

#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/counted_device.h"

namespace reprise::internal {
namespace {

// With these accelerators; without any, values of the CPU are evicted.
std::shared_ptr<RecordingContext> make_context(const std::vector<c10::Device>& accelerators) {
  SessionOptions options{.budgets = {{"cpu"}}, .name = "checkpoint"};
  for (const c10::Device device : accelerators) options.budgets.push_back({device.str()});
  auto context = std::make_shared<RecordingContext>(options);
  context->allow_evicting();
  context->count_for_steps();
  return context;
}

// Returns the bytes at this device that backward will ask for and that are not resident.
Bytes gone_at(DeviceOrdinal device, const Values& values) {
  Bytes bytes = 0;
  for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
    if (values.device(v) == device && values.pending().any_of(v) && !values.resident(v)) bytes += values.bytes(v);
  }
  return bytes;
}

}  // namespace

Site::Site() : of_cpu_(make_context({})), context_(of_cpu_.get()) {}

std::shared_ptr<Recording> Site::begin_pass() {
  return std::make_shared<Recording>(&context() == of_cpu_.get() ? of_cpu_ : of_all_, recipes_);
}

void Site::look_for_devices() {
  if (!looks_.load(std::memory_order_acquire)) return;
  const auto accelerators = accelerators_in_use();
  if (accelerators.empty()) return;
  std::shared_ptr<RecordingContext> found;
  try {
    found = make_context(accelerators);
  } catch (const BadOption&) {  // they cannot be counted: values there are kept
  }
  const Arbiter lock;
  if (!looks_.exchange(false, std::memory_order_acq_rel) || !found) return;
  of_all_ = std::move(found);
  context_.store(of_all_.get(), std::memory_order_release);
  Arbiter::discard_all(std::exchange(recipes_, nullptr));
}

void Site::end_region(Recording& recording) {
  if (RecordingContext* const step = regions().step) {
    const Meter& meter = step->device().meter();
    step->counters().region_ends(gone_at(recording.context().device_of(meter), recording.values()), meter.live());
  }
  recording.end();
  const RecipeCursor& cursor = recording.cursor();
  const bool with_present_context = &recording.context() == &context();
  if (with_present_context && !cursor.following() && !cursor.recipes().operators.empty()) recipes_ = cursor.shared();
}

}  // namespace reprise::internal
