#include "torch/evict/recompute_cost.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "torch/libtorch/per_thread.h"
#include "torch/memory/meter.h"

namespace reprise::internal {
namespace {

constexpr int longest_walk = 400;          // operators looked at for one score
constexpr double share_beyond_walk = 2;    // what a longer walk is taken for, of the part that was looked at
constexpr double cost_of_call = 2;         // microseconds that a replayed operator takes beside its own
constexpr float share_of_shortly = 0.01f;  // of the pass up to now

Bytes bytes_at(const Recording& r, DeviceOrdinal device, Id value) {
  return r.values().device(value) == device ? r.values().bytes(value) : 0;
}

// Returns the bytes at a device of what an operator needs and makes.
Bytes bytes_of_operator(const Recording& r, Id op, DeviceOrdinal device) {
  const Recipes& recipes = r.cursor().recipes();
  Bytes bytes = 0;
  Id before = no_value;
  for (const Reference& reference : recipes.references_of(op)) {
    const Id value = reference.value;
    if (value != no_value && value != before && r.values().recomputable(value)) {
      bytes += bytes_at(r, device, value);
    }
    before = value;
  }
  for (const Output& output : recipes.outputs_of(op)) {
    bytes += output.write < 0 ? bytes_at(r, device, output.value) : 0;
  }
  return bytes;
}

// Of those that have run. What was counted before is remembered.
Bytes largest_operator(const Recording& r, DeviceOrdinal device) {
  struct Largest {
    const Recipes* of = nullptr;
    std::size_t counted = 0;
    Bytes bytes = 0;
  };
  const Recipes& recipes = r.cursor().recipes();
  auto& by_device = of_thread<std::vector<Largest>>();
  if (by_device.size() <= device) by_device.resize(std::size_t{device} + 1);
  Largest& largest = by_device[device];
  if (largest.of != &recipes || largest.counted > recipes.operators.size()) largest = {&recipes};
  for (; largest.counted + 1 < recipes.operators.size(); ++largest.counted) {
    largest.bytes = std::max(largest.bytes, bytes_of_operator(r, static_cast<Id>(largest.counted), device));
  }
  return largest.bytes;
}

// Half of what the budget leaves beside the other bytes.
Bytes room_at(const Meter& meter) {
  return (meter.limit() - meter.other()) / 2;
}

}  // namespace

namespace {

// Of its own thread: it may be called in the middle of a replay.
struct Scratch {
  struct Wanted {
    Id value;
    bool anyway;  // recomputed, also if this value is not evicted
  };

  void begin(std::size_t operators, Id value) {
    if (seen.size() < operators) seen.resize(operators, 0);
    if (++stamp == 0) {
      std::fill(seen.begin(), seen.end(), 0);
      stamp = 1;
    }
    open.assign(1, {value, false});
  }
  // Returns true if the operator was not met before.
  [[nodiscard]] bool meet(Id op) { return std::exchange(seen[op], stamp) != stamp; }

  std::vector<std::uint32_t> seen;  // by operator: the last walk that met it
  std::uint32_t stamp = 0;
  std::vector<Wanted> open;
};

std::optional<double> cost_of_copy(const Values& values, Id value, const std::optional<TierCosts>& tier) {
  if (values.copies(value).packed()) return unpack_cost * static_cast<double>(values.bytes(value));
  if (tier && values.copies(value).below()) return tier->get_alone(values.bytes(value));
  return std::nullopt;
}

}  // namespace

// What was evicted and backward asks for itself, shortly after the value, is recomputed anyway, and so is all that is
// on the way to it: gates of a recurrent cell are no part of the cost of its state. Only shortly: the states of a long
// chain are all recomputed some time, but not for nothing.
double cost_of_return(const Recording& r, Id value, const std::optional<TierCosts>& tier, double enough) {
  const Recipes& recipes = r.cursor().recipes();
  const Values& values = r.values();
  const float shortly = values.saved_at(value) - r.journal().now() * share_of_shortly;
  auto& scratch = of_thread<Scratch>();
  scratch.begin(recipes.operators.size(), value);
  double cost = 0;
  int walked = 0;
  while (!scratch.open.empty() && cost <= enough) {
    auto [v, anyway] = scratch.open.back();
    scratch.open.pop_back();
    if (v != value && values.resident(v)) continue;
    if (const auto of_copy = cost_of_copy(values, v, tier)) {
      cost += *of_copy;
      continue;
    }
    if (!values.recomputable(v)) return never;
    const Id op = r.cursor().info(v).maker;
    if (!scratch.meet(op)) continue;
    if (v != value && values.pending().any_of(v)) {
      anyway = values.saved_at(v) >= shortly && values.saved_at(v) <= values.saved_at(value);
    }
    cost += (anyway ? 0 : r.journal().cost_of(op)) + cost_of_call;
    if (++walked > longest_walk) return cost * share_beyond_walk;
    for (const Reference& reference : recipes.references_of(op)) {
      if (reference.value != no_value && reference.value != value) scratch.open.push_back({reference.value, anyway});
    }
  }
  return cost;
}

HardToRecompute::HardToRecompute(const Recording& r, DeviceOrdinal device)
    : r_(r),
      device_(device),
      room_(room_at(r.context().devices()[device].device->meter())),
      any_(largest_operator(r, device) > room_) {}

bool HardToRecompute::operator()(Id value) const {
  if (!any_) return false;
  const Values& values = r_.values();
  std::vector<Id> open{value};
  std::vector<bool> seen(r_.cursor().recipes().operators.size());
  for (int walked = 0; !open.empty() && walked < longest_walk; ++walked) {
    const Id v = open.back();
    open.pop_back();
    const bool stays = values.copies(v).packed() || (values.bytes(v) <= values.bytes(value) && values.resident(v));
    if ((v != value && stays) || !values.recomputable(v)) continue;
    const Id op = r_.cursor().info(v).maker;
    if (seen[op]) continue;
    seen[op] = true;
    if (bytes_of_operator(r_, op, device_) > room_) return true;
    for (const Reference& reference : r_.cursor().recipes().references_of(op)) {
      if (reference.value != no_value) open.push_back(reference.value);
    }
  }
  return false;
}

}  // namespace reprise::internal
