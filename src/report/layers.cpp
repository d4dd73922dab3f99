#include "report/layers.h"

#include <algorithm>
#include <numeric>

#include "reprise/trace/timeline.h"

namespace reprise::internal {
namespace {

// Returns the smallest other bytes from each moment on: they have come, and stay until the end.
std::vector<Bytes> lasting_other(const Trace& trace) {
  std::vector<Bytes> lasting(trace.moments.size());
  Bytes smallest = trace.moments.empty() ? 0 : trace.moments.back().other;
  for (std::size_t m = lasting.size(); m-- > 0;) lasting[m] = smallest = std::min(smallest, trace.moments[m].other);
  return lasting;
}

// Returns whether the program holds the value from the first moment to the last, and no operator makes it.
bool is_there_throughout(const Trace& trace, Id v) {
  const Value& value = trace.values[v];
  return !value.maker && value.held == Stretch{0, trace.moment_count() - 1};
}

MemoryLayer layer_of(const Trace& trace, const Residence& residence) {
  switch (residence.origin) {
    case Residence::Origin::outside:
      return is_there_throughout(trace, residence.value) ? MemoryLayer::parameters : MemoryLayer::kept;
    case Residence::Origin::run: return MemoryLayer::kept;
    case Residence::Origin::replay:
    case Residence::Origin::get: return MemoryLayer::replayed;
    case Residence::Origin::put: return MemoryLayer::packed;
  }
  return MemoryLayer::other;
}

}  // namespace

std::string_view name(MemoryLayer layer) {
  switch (layer) {
    case MemoryLayer::parameters: return "parameters and optimizer";
    case MemoryLayer::gradients: return "gradients";
    case MemoryLayer::kept: return "kept";
    case MemoryLayer::packed: return "packed";
    case MemoryLayer::replayed: return "replayed";
    case MemoryLayer::other: return "other";
  }
  return "";
}

Bytes LayerBytes::total() const {
  return std::accumulate(of.begin(), of.end(), Bytes{0});
}

std::vector<LayerBytes> layers_of(const Trace& trace, const Plan& plan, const Simulation& simulation) {
  const std::size_t count = plan.actions.size();
  // Values: what comes with an action and what goes before it, then sums of that.
  std::vector<LayerBytes> layers(count + 1);
  for (const Residence& residence : simulation.residences) {
    const bool copy = residence.origin == Residence::Origin::put;
    if (copy && !plan.tiers[residence.tier].in_budget) continue;
    const Bytes bytes =
        copy ? plan.tiers[residence.tier].find(residence.value)->bytes : trace.values[residence.value].bytes;
    layers[residence.begin][layer_of(trace, residence)] += bytes;
    layers[residence.end][layer_of(trace, residence)] -= bytes;
  }
  for (std::size_t i = 1; i < count; ++i) {
    for (std::size_t layer = 0; layer < layer_count; ++layer) layers[i].of[layer] += layers[i - 1].of[layer];
  }
  layers.resize(count);

  // Other bytes: those of the moment that an action takes place at. In front of the first one there are none.
  const std::vector<Bytes> lasting = lasting_other(trace);
  const Bytes throughout = lasting.empty() ? 0 : lasting.front();
  Id at = nowhere, next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Action& action = plan.actions[i];
    if (action.kind != Action::Kind::drop) at = std::min(next, trace.moment_count() - 1);
    if (action.kind == Action::Kind::run) ++next;
    if (at != nowhere) {
      layers[i][MemoryLayer::parameters] += throughout;
      layers[i][MemoryLayer::gradients] += lasting[at] - throughout;
    }
    layers[i][MemoryLayer::other] = simulation.live[i] - layers[i].total();
  }
  return layers;
}

std::vector<Bytes> bytes_in(const Plan& plan, const Simulation& simulation, Id tier) {
  std::vector<Bytes> bytes(plan.actions.size() + 1, 0);
  for (const Residence& residence : simulation.residences) {
    if (residence.origin != Residence::Origin::put || residence.tier != tier) continue;
    const Bytes copy = plan.tiers[tier].find(residence.value)->bytes;
    bytes[residence.begin] += copy;
    bytes[residence.end] -= copy;
  }
  bytes.pop_back();
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

std::vector<double> costs_before(const Trace& trace, const Plan& plan) {
  return simulate(trace, plan, {.record_live = false, .check_budget = false, .record_times = true}).times;
}

Columns columns_of(const Trace& trace, const Plan& plan, const Simulation& simulation, std::size_t most) {
  Columns columns;
  // Drops only free: they take no time and are never the most that is live.
  std::vector<std::size_t> actions;
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    if (plan.actions[i].kind != Action::Kind::drop) actions.push_back(i);
  }
  std::vector<double> costs = costs_before(trace, plan);
  columns.cost = costs.back();
  if (actions.empty()) return columns;
  if (!(columns.cost > 0)) {
    for (std::size_t k = 0; k < actions.size(); ++k) {
      costs[actions[k]] = static_cast<double>(k);
      costs[actions[k] + 1] = static_cast<double>(k + 1);
    }
  }
  const double end = columns.cost > 0 ? columns.cost : static_cast<double>(actions.size());

  const std::size_t count = std::max<std::size_t>(1, most);
  columns.actions.assign(count, plan.actions.size());
  const auto column_at = [&](double cost) {
    return std::min(count - 1, static_cast<std::size_t>(cost / end * static_cast<double>(count)));
  };
  for (const std::size_t i : actions) {
    // An action that ends where a column begins does not reach into it.
    std::size_t last = column_at(costs[i + 1]);
    const std::size_t first = column_at(costs[i]);
    const double begin_of_last = end * static_cast<double>(last) / static_cast<double>(count);
    if (last > first && costs[i + 1] <= begin_of_last) --last;
    for (std::size_t column = first; column <= last; ++column) {
      std::size_t& best = columns.actions[column];
      if (best == plan.actions.size() || simulation.live[i] > simulation.live[best]) best = i;
    }
  }
  // Rounding may leave a column without an action: it shows what the one before shows.
  for (std::size_t column = 0; column < count; ++column) {
    if (columns.actions[column] != plan.actions.size()) continue;
    columns.actions[column] = column > 0 ? columns.actions[column - 1] : actions.front();
  }
  const std::vector<LayerBytes> layers = layers_of(trace, plan, simulation);
  for (const std::size_t i : columns.actions) columns.layers.push_back(layers[i]);
  return columns;
}

}  // namespace reprise::internal
