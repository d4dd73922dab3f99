#include "random_trace.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace reprise::testing {

std::uint64_t Random::next() {  // splitmix64
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomTraceOptions& options) : options_(options), random_(seed) {
    trace_.name = "random " + std::to_string(seed);
  }

  Trace timeline() {
    for (Id m = 0; m < options_.moments; ++m) {
      if (random_.chance(options_.other_bytes)) other_ = some_bytes();
      random_.chance(options_.events) ? add_event(m) : add_operator(m);
      trace_.moments.back().other = other_;
    }
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (random_.chance(options_.held)) trace_.values[v].held = some_stretch(v);
    }
    if (random_.chance(options_.packed_tier)) add_tier("packed", true);
    if (random_.chance(options_.disk_tier)) add_tier("disk", false);
    return std::move(trace_);
  }

 private:
  void add_event(Id m) {
    Moment event;
    event.name = "event " + std::to_string(m);
    event.needs = some_values(m, random_.between(0, 3));
    event.cost = some_cost();
    trace_.moments.push_back(std::move(event));
  }

  void add_operator(Id m) {
    const Id op = static_cast<Id>(trace_.operators.size());
    Operator made;
    made.name = "operator " + std::to_string(op);
    made.inputs = some_values(m, random_.between(m == 0 ? 0 : 1, 3));
    made.cost = some_cost();
    if (random_.chance(options_.workspace)) made.workspace = some_bytes();
    made.replayable = !random_.chance(options_.not_replayable);
    const bool in_place = !made.inputs.empty() && random_.chance(options_.in_place);
    Id outputs = random_.chance(options_.several_outputs) ? random_.between(2, 3) : 1;
    if (!in_place && random_.chance(options_.no_outputs)) outputs = 0;
    for (Id i = 0; i < outputs; ++i) made.outputs.push_back(add_value(op, m));
    if (in_place) take_over(made.outputs[0], made.inputs[random_.below(made.inputs.size())], m);
    trace_.operators.push_back(std::move(made));
    Moment moment;
    moment.runs = op;
    trace_.moments.push_back(std::move(moment));
  }

  Id add_value(std::optional<Id> maker, Id made_at) {
    Value value;
    value.bytes = random_.chance(options_.zero_bytes) ? 0 : some_bytes();
    value.maker = maker;
    trace_.values.push_back(value);
    made_at_.push_back(made_at);
    first_needed_.push_back(options_.moments);
    taken_at_.push_back(options_.moments);
    return trace_.value_count() - 1;
  }

  void take_over(Id output, Id input, Id m) {
    trace_.values[output].bytes = trace_.values[input].bytes;
    trace_.values[output].takes_over = input;
    taken_at_[input] = m;
  }

  // Values that a moment can need, recent ones more often than old ones; sometimes new ones from outside.
  std::vector<Id> some_values(Id m, Id count) {
    std::vector<Id> chosen;
    for (Id i = 0; i < count; ++i) {
      Id v = -1;
      if (random_.chance(options_.outside)) {
        v = add_value({}, -1);
      } else if (!trace_.values.empty()) {
        const Id newest = trace_.value_count() - 1;
        v = std::max(random_.between(0, newest), random_.between(0, newest));
      }
      if (v < 0 || taken_at_[v] < m || std::find(chosen.begin(), chosen.end(), v) != chosen.end()) continue;
      first_needed_[v] = std::min(first_needed_[v], m);
      chosen.push_back(v);
    }
    return chosen;
  }

  Stretch some_stretch(Id v) {
    const Id end = std::min(taken_at_[v], options_.moments - 1);  // nothing holds it after its storage was taken over
    if (made_at_[v] < 0) {
      const Id first = random_.between(0, std::min(first_needed_[v], end));
      return {first, random_.between(first, end)};
    }
    const Id first = random_.chance(0.5) ? made_at_[v] : random_.between(made_at_[v], end);
    return {first, std::min(random_.between(first, end), random_.between(first, end))};
  }

  void add_tier(const char* tier_name, bool in_budget) {
    Tier tier;
    tier.name = tier_name;
    tier.in_budget = in_budget;
    const bool overlaps = !in_budget && options_.overlap > 0 && random_.chance(options_.overlap);
    tier.duplex = overlaps && random_.chance(0.5);
    Bytes sum = 0;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (random_.chance(0.3)) continue;
      const Bytes bytes = in_budget ? trace_.values[v].bytes / 2 : trace_.values[v].bytes;
      const double put_cost = some_cost();
      tier.entries.push_back({v, bytes, put_cost, some_cost()});
      if (overlaps) {
        tier.entries.back().put_time = some_cost();
        tier.entries.back().get_time = some_cost();
      }
      sum += bytes;
    }
    if (random_.chance(options_.limited_capacity)) tier.capacity = static_cast<Bytes>(random_.below(sum / 2 + 1));
    trace_.tiers.push_back(std::move(tier));
  }

  Bytes some_bytes() { return 1 + static_cast<Bytes>(random_.below(options_.largest_value)); }

  double some_cost() {
    if (random_.chance(options_.zero_cost)) return 0;
    if (random_.chance(options_.odd_costs)) {
      const double any = std::fabs(std::bit_cast<double>(random_.next()));
      if (any < 1e15) return any;
    }
    return 1 + static_cast<double>(random_.below(10));
  }

  const RandomTraceOptions& options_;
  Random random_;
  Trace trace_;
  Bytes other_ = 0;
  std::vector<Id> made_at_, first_needed_, taken_at_;  // by value
};

}  // namespace

Trace random_trace(std::uint64_t seed, const RandomTraceOptions& options) {
  return Generator(seed, options).timeline();
}

Trace random_graph(std::uint64_t seed, int nodes) {
  Random random(seed);
  Trace trace;
  trace.name = "random graph " + std::to_string(seed);
  for (Id node = 0; node < nodes; ++node) {
    Operator made;
    made.name = "node " + std::to_string(node);
    made.cost = static_cast<double>(random.below(11));
    made.outputs = {node};
    for (Id edge = random.between(0, 3); node > 0 && edge > 0; --edge) {
      made.inputs.push_back(std::max(random.between(0, node - 1), random.between(0, node - 1)));
    }
    std::sort(made.inputs.begin(), made.inputs.end());
    made.inputs.erase(std::unique(made.inputs.begin(), made.inputs.end()), made.inputs.end());
    trace.operators.push_back(std::move(made));
    Value value;
    value.bytes = static_cast<Bytes>(random.below(21));
    value.maker = node;
    trace.values.push_back(value);
    Moment moment;
    moment.runs = node;
    trace.moments.push_back(std::move(moment));
  }
  return trace;
}

namespace {

Value value_of(Bytes bytes, std::optional<Id> maker, std::optional<Stretch> held) {
  Value value;
  value.bytes = bytes;
  value.maker = maker;
  value.held = held;
  return value;
}

class TrainingStep {
 public:
  TrainingStep(std::uint64_t seed, Id layers)
      : random_(seed), layers_(layers), last_(2 * layers), saved_(layers), weight_bytes_(layers, 0) {
    trace_.name = "random training step " + std::to_string(seed);
  }

  Trace step() {
    activation_ = add(value_of(some_bytes(30), {}, Stretch{0, last_}));  // the batch
    for (Id layer = 0; layer < layers_; ++layer) forward(layer);
    trace_.values[activation_].held->last = last_;  // the result
    backward();
    return std::move(trace_);
  }

 private:
  void forward(Id layer) {
    Operator op;
    op.name = "layer " + std::to_string(layer);
    op.cost = static_cast<double>(1 + random_.below(20));
    op.inputs = {activation_};
    Value output = value_of(some_bytes(30), layer, Stretch{layer, layer + 1});
    bool output_is_saved = false;
    switch (random_.below(6)) {
      case 0:  // an activation function: saves its output, and is in place if nothing else needs its input
        output.bytes = trace_.values[activation_].bytes;
        if (!activation_is_saved_ && skip_ != activation_) {
          output.takes_over = activation_;
          trace_.values[activation_].held->last = layer;
        }
        activation_ = add(output);
        op.outputs = saved_[layer] = {activation_};
        output_is_saved = true;
        break;
      case 1:  // dropout: saves a mask
        op.replayable = random_.chance(0.5);
        activation_ = add(output);
        saved_[layer] = {add(value_of(some_bytes(8), layer, {}))};
        op.outputs = {activation_, saved_[layer][0]};
        break;
      case 2:  // the end of a residual block: saves nothing
        if (skip_ && *skip_ != activation_) op.inputs.push_back(*skip_);
        skip_.reset();
        activation_ = add(output);
        op.outputs = {activation_};
        break;
      default:  // with a weight: saves its inputs
        weight_bytes_[layer] = some_bytes(10);
        op.inputs.push_back(add(value_of(weight_bytes_[layer], {}, Stretch{0, last_})));
        op.workspace = random_.chance(0.5) ? some_bytes(20) : 0;
        saved_[layer] = op.inputs;
        activation_ = add(output);
        op.outputs = {activation_};
    }
    activation_is_saved_ = output_is_saved;
    if (!skip_ && random_.chance(0.3)) skip_ = activation_;
    trace_.operators.push_back(std::move(op));
    Moment moment;
    moment.runs = layer;
    trace_.moments.push_back(std::move(moment));
  }

  void backward() {
    Bytes gradients = some_bytes(30);
    add_event("loss", {activation_}, 1, gradients);
    for (Id layer = layers_ - 1; layer >= 0; --layer) {
      gradients += weight_bytes_[layer];
      add_event("backward of layer " + std::to_string(layer), saved_[layer], 2 * trace_.operators[layer].cost,
                gradients + some_bytes(30));
    }
  }

  void add_event(std::string name, std::vector<Id> needs, double cost, Bytes other) {
    Moment event;
    event.name = std::move(name);
    event.needs = std::move(needs);
    event.cost = cost;
    event.other = other;
    trace_.moments.push_back(std::move(event));
  }

  Id add(const Value& value) {
    trace_.values.push_back(value);
    return trace_.value_count() - 1;
  }

  Bytes some_bytes(Bytes largest) { return 1 + static_cast<Bytes>(random_.below(largest)); }

  Random random_;
  const Id layers_, last_;
  Trace trace_;
  Id activation_ = 0;                   // what the next layer works on
  bool activation_is_saved_ = true;     // for backward, by the layer that made it
  std::optional<Id> skip_;              // the input of a residual block that has not ended
  std::vector<std::vector<Id>> saved_;  // by layer: what its backward needs
  std::vector<Bytes> weight_bytes_;     // by layer
};

}  // namespace

Trace random_training_step(std::uint64_t seed, int layers) {
  return TrainingStep(seed, layers).step();
}

}  // namespace reprise::testing
