#include "torch/session/site.h"

#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/place.h"

namespace reprise::internal {
namespace {

// With these accelerators; without any, values of the CPU are forgotten.
std::shared_ptr<Rules> make_rules(const std::vector<c10::Device>& accelerators) {
  SessionOptions options{.budgets = {{"cpu"}}, .name = "checkpoint"};
  for (const c10::Device device : accelerators) options.budgets.push_back({device.str()});
  auto rules = std::make_shared<Rules>(options);
  rules->allow_forgetting();
  rules->count_for_steps();
  return rules;
}

// Bytes at this place that backward will ask for and that nobody has.
Bytes gone_at(PlaceIndex place, const Values& values) {
  Bytes bytes = 0;
  for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
    if (values.place(v) == place && values.pending().any_of(v) && !values.resident(v)) bytes += values.bytes(v);
  }
  return bytes;
}

}  // namespace

Site::Site() : of_cpu_(make_rules({})), rules_(of_cpu_.get()) {}

std::shared_ptr<Recording> Site::begin_period() {
  return std::make_shared<Recording>(&rules() == of_cpu_.get() ? of_cpu_ : of_all_, recipes_);
}

void Site::look_for_places() {
  if (!looks_.load(std::memory_order_acquire)) return;
  const auto accelerators = accelerators_in_use();
  if (accelerators.empty()) return;
  std::shared_ptr<Rules> found;
  try {
    found = make_rules(accelerators);
  } catch (const BadOption&) {  // they cannot be counted: values there are kept
  }
  const Arbiter lock;
  if (!looks_.exchange(false, std::memory_order_acq_rel) || !found) return;
  of_all_ = std::move(found);
  rules_.store(of_all_.get(), std::memory_order_release);
  Arbiter::discard_all(std::exchange(recipes_, nullptr));
}

void Site::end_region(Recording& recording) {
  if (Rules* const step = regions().step) {
    const Meter& meter = step->place().meter();
    step->counters().region_ends(gone_at(recording.rules().place_of(meter), recording.values()), meter.live());
  }
  recording.end();
  const Course& course = recording.course();
  const bool with_present_rules = &recording.rules() == &rules();
  if (with_present_rules && !course.following() && !course.recipes().operators.empty()) recipes_ = course.shared();
}

}  // namespace reprise::internal
