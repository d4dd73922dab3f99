#include "accelerator/kernel_rules.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace reprise::testing::accelerator {
namespace {

struct RecordingContext {
  std::mutex mutex;
  Durations durations;
  Counts counts;
  std::int64_t fails_at = -1;
};
RecordingContext& rules() {
  static auto& all = *new RecordingContext;  // never destroyed: streams are used until the process ends
  return all;
}
std::atomic<std::int64_t> microseconds_later{0};

}  // namespace

KernelRule next_kernel(const Kernel& kernel) {
  KernelRule rule;
  const std::lock_guard lock(rules().mutex);
  if (rules().durations) rule.duration = rules().durations(kernel);
  rule.fails = rules().counts.kernels++ == rules().fails_at;
  ++rules().counts.kernels_by_name[kernel.name];
  return rule;
}

std::chrono::microseconds delay_of_kernels() {
  return std::chrono::microseconds(microseconds_later.load());
}

void durations(Durations chosen) {
  const std::lock_guard lock(rules().mutex);
  rules().durations = std::move(chosen);
}
void slow_down(std::chrono::microseconds by) {
  microseconds_later = by.count();
}

void fail_kernel_after(std::int64_t kernels) {
  const std::lock_guard lock(rules().mutex);
  rules().fails_at = kernels < 0 ? -1 : rules().counts.kernels + kernels;
}

Counts counts() {
  const std::lock_guard lock(rules().mutex);
  return rules().counts;
}
void count_wait(const std::string& who) {
  const std::lock_guard lock(rules().mutex);
  ++rules().counts.waits;
  ++rules().counts.waits_by_name[who];
}
void count_allocation() {
  const std::lock_guard lock(rules().mutex);
  ++rules().counts.allocations;
}

}  // namespace reprise::testing::accelerator
