#include "support/chains.h"

#include <algorithm>
#include <set>

#include "support/random_trace.h"
#include "support/small_trace.h"

namespace reprise::testing {

ChainForm equal_layers(int layers, const ChainForm::Layer& layer) {
  ChainForm form;
  form.layers.assign(layers, layer);
  return form;
}

ChainForm random_chain(std::uint64_t seed, int layers) {
  Random random(seed);
  ChainForm form;
  const bool tapes = random.chance(0.5), gradients = random.chance(0.5), workspace = random.chance(0.3);
  const bool outputs = random.chance(0.3);
  form.events = random.chance(0.5);
  form.input = random.between(0, 4);
  form.parameters = random.chance(0.5) ? random.between(1, 9) : 0;
  for (int k = 0; k < layers; ++k) {
    ChainForm::Layer layer;
    layer.state = random.between(1, 6);
    if (tapes) layer.tape = random.between(0, 6);
    if (gradients) layer.gradient = random.between(0, 6);
    if (workspace) layer.workspace = random.between(0, 3), layer.backward_workspace = random.between(0, 3);
    layer.forward_cost = random.between(1, 9);
    layer.backward_cost = random.between(1, 9);
    layer.needs_output = outputs && random.chance(0.5);
    layer.needs_input = layer.tape == 0 || random.chance(0.7);
    form.layers.push_back(layer);
  }
  return form;
}

Trace chain_trace(const ChainForm& form) {
  SmallTrace made;
  const int layers = static_cast<int>(form.layers.size());
  std::vector<Id> states{made.outside(form.input)}, tapes{-1};
  std::optional<Id> parameters;
  if (form.parameters > 0) parameters = made.outside(form.parameters, Stretch{0, 2 * layers - 1});
  for (const ChainForm::Layer& layer : form.layers) {
    std::vector<Id> inputs{states.back()};
    if (parameters) inputs.push_back(*parameters);
    std::vector<Bytes> outputs{layer.state};
    if (layer.tape > 0) outputs.push_back(layer.tape);
    const Id next = made.trace.value_count();
    made.run(inputs, outputs, layer.forward_cost, layer.workspace);
    states.push_back(next);
    tapes.push_back(layer.tape > 0 ? next + 1 : -1);
  }
  std::optional<Id> gradient;
  Bytes gradient_bytes = 0;
  for (int k = layers; k >= 1; --k) {
    const ChainForm::Layer& layer = form.layers[k - 1];
    std::vector<Id> needs;
    if (layer.needs_input) needs.push_back(states[k - 1]);
    if (layer.tape > 0) needs.push_back(tapes[k]);
    if (layer.needs_output) needs.push_back(states[k]);
    if (form.events) {
      made.event(needs, layer.backward_cost);
      made.trace.moments.back().other = gradient_bytes + layer.gradient + layer.backward_workspace;
      gradient_bytes = layer.gradient;
      continue;
    }
    if (gradient) needs.push_back(*gradient);
    gradient = made.trace.value_count();
    made.run(needs, {layer.gradient}, layer.backward_cost, layer.backward_workspace);
  }
  return made.trace;
}

Trace graph_chain(int layers) {
  SmallTrace made;
  std::vector<Id> states{made.outside(1)};
  for (int k = 1; k < layers; ++k) {
    states.push_back(made.trace.value_count());
    made.run({states[k - 1]}, {1});
  }
  std::optional<Id> gradient;
  for (int k = layers; k >= 1; --k) {
    std::vector<Id> needs{states[k - 1]};
    if (gradient) needs.push_back(*gradient);
    gradient = made.trace.value_count();
    made.run(needs, {0});
  }
  return made.trace;
}

Tier disk_for(const Trace& trace, double put_cost, double get_cost) {
  Tier tier{"disk", std::nullopt, false, {}};
  for (Id v = 0; v < trace.value_count(); ++v) {
    if (!trace.values[v].held) tier.entries.push_back({v, trace.values[v].bytes, put_cost, get_cost});
  }
  return tier;
}

// ---- the machine ----------------------------------------------------------------------------------------------------

namespace {

class Machine {
 public:
  Machine(int layers, int levels) : layers_(layers), next_backward_(layers), stored_(levels) {
    report_.writes.assign(levels, 0);
    report_.reads.assign(levels, 0);
    report_.most_stored.assign(levels, 0);
  }

  StepReport run(const ChainSteps& steps) {
    for (std::size_t i = 0; i < steps.size() && report_.mistake.empty(); ++i) {
      if (!take(steps[i])) {
        report_.mistake = "step " + std::to_string(i) + ", kind " + std::to_string(static_cast<int>(steps[i].kind)) +
                          " at " + std::to_string(steps[i].at);
      }
    }
    if (report_.mistake.empty() && next_backward_ != 0) report_.mistake = "backward does not reach the first layer";
    return report_;
  }

 private:
  bool take(const ChainStep& step) {
    auto& stored = stored_[step.level];
    switch (step.kind) {
      case ChainStep::Kind::advance:
      case ChainStep::Kind::tape: {
        if (current_ != step.at - 1 || step.at > layers_) return false;
        current_ = step.at;
        const bool tapes = step.kind == ChainStep::Kind::tape;
        if (tapes) taped_.insert(step.at);
        ++(tapes ? report_.tapes : report_.advances);
        return true;
      }
      case ChainStep::Kind::backward: current_ = -1; return step.at == next_backward_-- && taped_.erase(step.at) == 1;
      case ChainStep::Kind::store:
        ++report_.writes[step.level];
        if (current_ != step.at || !stored.insert(step.at).second) return false;
        report_.most_stored[step.level] = std::max(report_.most_stored[step.level], static_cast<int>(stored.size()));
        return true;
      case ChainStep::Kind::load:
        ++report_.reads[step.level];
        current_ = step.at;
        return stored.count(step.at) == 1;
      case ChainStep::Kind::discard: return stored.erase(step.at) == 1;
    }
    return false;
  }

  const int layers_;
  int current_ = 0, next_backward_;  // the state at hand, -1 if none; the layer whose backward is next
  std::set<int> taped_;
  std::vector<std::set<int>> stored_;
  StepReport report_;
};

}  // namespace

StepReport execute_steps(const ChainSteps& steps, int layers, int levels) {
  return Machine(layers, levels).run(steps);
}

}  // namespace reprise::testing
