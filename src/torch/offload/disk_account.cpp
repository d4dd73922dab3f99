#include "torch/offload/disk_account.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

void DiskTotals::tell(Summary& summary, const DiskTotals& before) const {
  summary.disk_put_last_step = put - before.put;
  summary.disk_got_last_step = got - before.got;
  summary.disk_seconds = seconds - before.seconds;
  summary.disk_wait_seconds = waited - before.waited;
  summary.disk_failures = failures;
  summary.last_disk_failure = last_failure;
}

DiskAccount::DiskAccount(const DiskOffload& options) : free_(options.eager) {
  if (options.bytes < largest_bytes) terms_.capacity = options.bytes;
  if (free_) terms_.least = 1;
  reset();
}

void DiskAccount::reset() {
  for (const Work work : {Work::put, Work::get, Work::remove}) {
    Learnt& learnt = learnt_[static_cast<int>(work)] = {};
    terms_of(work) = free_ ? TierWork{} : TierWork{0, learnt.cpu.line(), learnt.time.line()};
  }
  reset_totals();
}

TierWork& DiskAccount::terms_of(Work work) {
  switch (work) {
    case Work::put: return terms_.put;
    case Work::get: return terms_.get;
    case Work::remove: break;
  }
  return terms_.remove;
}

double DiskAccount::rate(Work work) const {
  constexpr double slowest = 0.02;
  return std::max(slowest, 1.0 / (1 + learnt_[static_cast<int>(work)].count));
}

void DiskAccount::done(Work work, std::size_t bytes, const Spent& spent) {
  if (work == Work::put) totals_.put += static_cast<Bytes>(bytes);
  if (work == Work::get) totals_.got += static_cast<Bytes>(bytes);
  if (work != Work::remove) totals_.seconds += spent.time * 1e-6;
  if (free_) return;
  TierWork& terms = terms_of(work);
  Learnt& learnt = learnt_[static_cast<int>(work)];
  learnt.cpu.learn(static_cast<Bytes>(bytes), spent.cpu);
  learnt.time.learn(static_cast<Bytes>(bytes), spent.time);
  if (work != Work::remove) terms.caller += rate(work) * (std::exchange(learnt.calls, 0) - terms.caller);
  ++learnt.count;
  terms.cpu = learnt.cpu.line();
  terms.time = learnt.time.line();
}

// Files are evicted by the hundred when a step ends, and removed one by one: there, each call is one file.
void DiskAccount::called(Work work, double cpu) {
  if (free_) return;
  if (work == Work::remove) {
    terms_.remove.caller += rate(work) * (cpu - terms_.remove.caller);
  } else {
    learnt_[static_cast<int>(work)].calls += cpu;
  }
}

void DiskAccount::failed(const std::string& why) {
  ++totals_.failures;
  totals_.last_failure = why;
}

}  // namespace reprise::internal
