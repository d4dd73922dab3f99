#include "reprise/chain/form.h"

#include <fmt/format.h>

#include "reprise/trace/error.h"

namespace reprise {
namespace {

void require_not_negative(Id layer, const char* what, double number) {
  if (number >= 0) return;
  throw BadOption(fmt::format("[chain] {} of layer {} is {}: it cannot be negative", what, layer, number));
}

void check_form(const ChainForm& form) {
  for (Id k = 0; k < form.size(); ++k) {
    const ChainLayerForm& layer = form.layers[k];
    require_not_negative(k, "state", static_cast<double>(layer.state));
    require_not_negative(k, "tape", static_cast<double>(layer.tape));
    require_not_negative(k, "gradient", static_cast<double>(layer.gradient));
    require_not_negative(k, "workspace", static_cast<double>(layer.workspace));
    require_not_negative(k, "forward_cost", layer.forward_cost);
    require_not_negative(k, "backward_cost", layer.backward_cost);
  }
}

}  // namespace

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
  check_form(form);
  const Id n = form.size();
  Trace trace;
  trace.name = "chain";
  trace.tiers = form.tiers;
  trace.values.resize(form.tapes ? 2 * n + 1 : n + 1);
  trace.operators.resize(n);
  trace.moments.resize(2 * n);
  trace.values[0].bytes = form.input;
  for (Id k = 0; k < n; ++k) {
    const ChainLayerForm& layer = form.layers[k];
    trace.operators[k] = {"forward",          {form.state_value(k)}, {form.state_value(k + 1)},
                          layer.forward_cost, layer.workspace,       true};
    trace.moments[k].runs = k;
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
