#include "torch/memory/meter.h"

#include <algorithm>
#include <exception>

namespace reprise::internal {
namespace {

struct Callbacks {
  std::atomic<meter::Pressure> pressure{nullptr};
  std::atomic<meter::OnFree> on_free{nullptr};
};
constinit Callbacks callbacks_of_all;

}  // namespace

namespace meter {

std::pair<Pressure, OnFree> callbacks(Pressure pressure, OnFree on_free) {
  return {callbacks_of_all.pressure.exchange(pressure), callbacks_of_all.on_free.exchange(on_free)};
}

bool is_adopted(Header& header) {
  if (header.tag.recording == 0) return false;
  const OnFree died = callbacks_of_all.on_free.load(std::memory_order_acquire);
  return died && died(header);
}

}  // namespace meter

// ---- counting ------------------------------------------------------------------------------------------------------

void Meter::track(meter::Header& header) {
  if (header.tracked) return;
  header.tracked = true;
  counters_.tracked.fetch_add(header.bytes, relaxed);
}

void Meter::untrack(meter::Header& header) {
  if (!header.tracked) return;
  header.tracked = false;
  counters_.tracked.fetch_sub(header.bytes, relaxed);
  raise(counters_.other_peak, other());
}

Bytes Meter::take_other_peak() {
  const Bytes now = other();
  return std::max(now, counters_.other_peak.exchange(now, relaxed));
}

// ---- limiting ------------------------------------------------------------------------------------------------------

void Meter::limit(Bytes limit, Bytes reserve) {
  settings_.limit.store(limit, relaxed);
  settings_.ceiling.store(limit - reserve, relaxed);
}

bool Meter::charge(Bytes bytes) {
  const Bytes now = reserve_within(bytes, limit());
  if (now == 0) return false;
  allocated(now);
  return true;
}

[[gnu::noinline]] Bytes Meter::press_and_reserve(Bytes bytes) {
  const meter::Pressure press = callbacks_of_all.pressure.load(std::memory_order_acquire);
  // Another thread may take what was freed, or the reserve: then it is pressed again, so that an error is the policy's.
  for (int refused = 0; press != nullptr && refused < 100;) {
    const bool freed = press(*this, bytes);
    if (const Bytes now = reserve_within(bytes, freed ? ceiling() : limit()); now != 0) return now;
    refused += freed ? 0 : 1;
  }
  return reserve_within(bytes, limit());
}

bool Meter::press_further(Bytes bytes) {
  const meter::Pressure press = callbacks_of_all.pressure.load(std::memory_order_acquire);
  if (!press || limit() == meter::unlimited) return false;
  const Bytes before = live();
  try {
    (void)press(*this, ceiling() - before + bytes);
  } catch (const std::exception&) {  // not all of them, but perhaps some
  }
  return live() < before;
}

// ---- for tests -----------------------------------------------------------------------------------------------------

void Meter::fail_after(std::int64_t allocations) {
  const std::uint64_t now = this->allocations();
  settings_.fails_at.store(allocations < 0 ? UINT64_MAX : now + static_cast<std::uint64_t>(allocations), relaxed);
}

}  // namespace reprise::internal
