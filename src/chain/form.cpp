#include "reprise/chain/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "reprise/trace/error.h"

namespace reprise {
namespace {

void require_bytes(const std::string& what, Bytes bytes) {
  if (bytes < 0) throw BadOption(fmt::format("[chain] {} is {}: it cannot be negative", what, bytes));
}

void require_cost(const std::string& what, double cost) {
  if (cost >= 0 && std::isfinite(cost)) return;
  throw BadOption(fmt::format("[chain] {} is {}: it has to be a number that is not negative", what, cost));
}

}  // namespace

void check(const ChainForm& form) {
  require_bytes("input", form.input);
  require_bytes("gradient", form.gradient);
  require_bytes("other", form.other);
  require_bytes("transit", form.transit);
  for (Id k = 0; k < form.size(); ++k) {
    const auto named = [&](const char* what) { return fmt::format("{} of layer {}", what, k); };
    const ChainLayerForm& layer = form.layers[k];
    // The sentence is only made where it is needed.
    const bool good = std::min({layer.state, layer.tape, layer.gradient, layer.workspace}) >= 0 &&
                      std::isfinite(layer.forward_cost + layer.backward_cost) && layer.forward_cost >= 0 &&
                      layer.backward_cost >= 0;
    if (good) continue;
    require_bytes(named("state"), layer.state);
    require_bytes(named("tape"), layer.tape);
    require_bytes(named("gradient"), layer.gradient);
    require_bytes(named("workspace"), layer.workspace);
    require_cost(named("forward_cost"), layer.forward_cost);
    require_cost(named("backward_cost"), layer.backward_cost);
  }
  for (const Tier& tier : form.tiers) {
    for (const TierEntry& entry : tier.entries) {
      if (entry.bytes >= 0 && entry.put_cost >= 0 && entry.get_cost >= 0 &&
          std::isfinite(entry.put_cost + entry.get_cost)) {
        continue;
      }
      const auto named = [&](const char* what) {
        return fmt::format("{} of value {} in '{}'", what, entry.value, tier.name);
      };
      require_bytes(named("bytes"), entry.bytes);
      require_cost(named("put_cost"), entry.put_cost);
      require_cost(named("get_cost"), entry.get_cost);
    }
  }
}

ChainForm equal_layers(Id layers) {
  ChainForm form;
  form.layers.resize(layers);
  return form;
}

namespace {

Id add_tier(ChainForm& form, const char* name, bool in_budget, double put_cost, double get_cost) {
  Tier tier{name, std::nullopt, in_budget, {}};
  tier.entries.reserve(form.size() + 1);
  for (Id k = 0; k <= form.size(); ++k) {
    tier.entries.push_back({form.state_value(k), form.state_bytes(k), put_cost, get_cost});
  }
  form.tiers.push_back(std::move(tier));
  return static_cast<Id>(form.tiers.size()) - 1;
}

}  // namespace

void add_packed_tier(ChainForm& form, double put_cost, double get_cost) {
  form.packed = add_tier(form, "packed", true, put_cost, get_cost);
}

void add_disk_tier(ChainForm& form, double put_cost, double get_cost) {
  form.disk = add_tier(form, "disk", false, put_cost, get_cost);
}

Trace chain_trace(const ChainForm& form) {
  check(form);
  const Id n = form.size();
  Trace trace;
  trace.name = "chain";
  trace.tiers = form.tiers;
  trace.values.resize(form.tapes ? 2 * n + 1 : n + 1);
  trace.operators.resize(n);
  trace.moments.resize(2 * static_cast<std::size_t>(n));
  trace.values[0].bytes = form.input;
  for (Id k = 0; k < n; ++k) {
    const ChainLayerForm& layer = form.layers[k];
    trace.operators[k] = {"forward",          {form.state_value(k)}, {form.state_value(k + 1)},
                          layer.forward_cost, layer.workspace,       true};
    trace.moments[k].runs = k;
    trace.moments[k].other = form.other;
    trace.values[form.state_value(k + 1)] = {layer.state, k, std::nullopt, std::nullopt};

    Moment& backward = trace.moments[form.backward_moment(k)];
    backward.name = "backward";
    backward.needs = {form.state_value(k)};
    backward.cost = layer.backward_cost;
    // The gradient that comes in and the one that goes out.
    backward.other = layer.gradient + (k + 1 < n ? form.layers[k + 1].gradient : form.gradient);
    if (form.tapes) {
      trace.operators[k].outputs.push_back(form.tape_value(k));
      trace.values[form.tape_value(k)] = {layer.tape, k, std::nullopt, std::nullopt};
      backward.needs.push_back(form.tape_value(k));
    }
  }
  return trace;
}

}  // namespace reprise
