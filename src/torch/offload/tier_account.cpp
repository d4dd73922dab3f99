#include "torch/offload/tier_account.h"

#include <algorithm>
#include <utility>

namespace reprise::internal {

TierAccount::TierAccount(TierCosts costs, Learns learns) : learns_(learns), costs_(std::move(costs)) {
  reset();
}

void TierAccount::reset() {
  for (const Work work : {Work::put, Work::get, Work::remove}) {
    const Learnt& unknown = learnt(work) = {};
    cost_of(work) = {};
    if (learns_ == Learns::all) cost_of(work).cpu = unknown.cpu.cost();
    if (learns_ == Learns::all || (learns_ == Learns::time_of_streams && work != Work::remove)) {
      cost_of(work).time = unknown.time.cost();
    }
  }
  reset_totals();
}

TransferCost& TierAccount::cost_of(Work work) {
  switch (work) {
    case Work::put: return costs_.put;
    case Work::get: return costs_.get;
    case Work::remove: break;
  }
  return costs_.remove;
}

double TierAccount::rate(Work work) {
  constexpr double slowest = 0.02;
  return std::max(slowest, 1.0 / (1 + learnt(work).count));
}

void TierAccount::done(Work work, std::size_t bytes, const Spent& spent) {
  if (work == Work::put) totals_.put += static_cast<Bytes>(bytes);
  if (work == Work::get) totals_.got += static_cast<Bytes>(bytes);
  if (work != Work::remove) totals_.seconds += spent.time * 1e-6;
  if (learns_ != Learns::all) return;
  TransferCost& cost = cost_of(work);
  Learnt& seen = learnt(work);
  seen.cpu.learn(static_cast<Bytes>(bytes), spent.cpu);
  seen.time.learn(static_cast<Bytes>(bytes), spent.time);
  if (work != Work::remove) cost.caller += rate(work) * (std::exchange(seen.calls, 0) - cost.caller);
  ++seen.count;
  cost.cpu = seen.cpu.cost();
  cost.time = seen.time.cost();
}

void TierAccount::took(Work work, std::size_t bytes, double microseconds) {
  learnt(work).time.learn(static_cast<Bytes>(bytes), microseconds);
  cost_of(work).time = learnt(work).time.cost();
}

// Copies are dropped by the hundred when a step ends, and removed one by one: there, each call is one file.
void TierAccount::called(Work work, double cpu) {
  if (learns_ != Learns::all) return;
  if (work == Work::remove) {
    costs_.remove.caller += rate(work) * (cpu - costs_.remove.caller);
  } else {
    learnt(work).calls += cpu;
  }
}

void TierAccount::failed(const std::string& why) {
  ++totals_.failures;
  totals_.last_failure = why;
}

}  // namespace reprise::internal
