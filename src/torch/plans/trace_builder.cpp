#include "torch/plans/trace_builder.h"

#include <algorithm>
#include <utility>

#include "reprise/trace/timeline.h"
#include "torch/memory/meter.h"
#include "torch/offload/packed_copy.h"
#include "torch/plans/in_place_chains.h"

namespace reprise::internal {
namespace {

// Returns the bytes at the device that plans are made for.
Bytes planned_bytes(const RecordedValue& value) {
  return value.device == 0 ? value.bytes : 0;
}

void sort_unique(std::vector<Id>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

class TraceBuilder {
 public:
  explicit TraceBuilder(const RecordedPass& pass) : recipes_(*pass.recipes), profile_(pass.profile), chains_(pass) {}

  PassTrace build(const OfferedTiers& tiers) {
    add_values();
    add_operators();
    add_moments();
    check(trace_);
    add_takeovers();
    if (tiers.pack) add_packing();
    if (tiers.below) add_tier(*tiers.below);
    check(trace_);
    return std::move(built_);
  }

 private:
  // Bytes of the values that an operator makes.
  struct NewBytes {
    Bytes made = 0;   // in new memory
    Bytes taken = 0;  // in memory that was there, among the other bytes
  };

  [[nodiscard]] Id operator_count() const { return static_cast<Id>(recipes_.operators.size()); }
  [[nodiscard]] NewBytes new_bytes(Id op) const;
  [[nodiscard]] Id released(Id value, Id made) const;
  void add_values();
  void add_operators();
  void add_inputs(Id op);
  void add_outputs(Id op);
  void add_moments();
  void add_event(Id moment);
  void run_event(Moment&, Bytes workspace);
  void add_run(Id moment);
  void add_bytes_inside_chain(Id op);
  void add_takeovers();
  void add_packing();
  void add_tier(const TierCosts&);

  const Recipes& recipes_;
  const PassProfile& profile_;
  const InPlaceChains chains_;
  PassTrace built_;
  Trace& trace_ = built_.trace;
  std::vector<Id> value_of_;  // by recorded value: in the trace, or -1
};

// ---- values and operators ------------------------------------------------------------------------------------------

Id TraceBuilder::released(Id value, Id made) const {
  const auto& released = profile_.released;
  const bool known = static_cast<std::size_t>(value) < released.size() && released[value] >= 0;
  return std::max(made, known ? released[value] : static_cast<Id>(profile_.moments.size()) - 1);
}

void TraceBuilder::add_values() {
  value_of_.assign(recipes_.values.size(), -1);
  for (Id op = 0; op < operator_count(); ++op) {
    if (chains_.goes_on(op)) continue;
    for (const Output& output : recipes_.outputs_of(op)) {
      const RecordedValue& recorded = recipes_.values[output.value];
      if (recorded.maker != op || value_of_[output.value] >= 0) continue;
      const Id made = profile_.moment_of[op];
      value_of_[output.value] = static_cast<Id>(trace_.values.size());
      built_.recorded.push_back(output.value);
      built_.released.push_back(released(output.value, made));
      trace_.values.push_back({planned_bytes(recorded), op, Stretch{made, built_.released.back()}, std::nullopt});
    }
  }
}

// One for each recorded operator, so that moments stay what they were; those inside a chain have neither outputs nor
// cost, and the last one has the inputs and the cost of all.
void TraceBuilder::add_operators() {
  trace_.operators.resize(recipes_.operators.size());
  built_.operators.resize(recipes_.operators.size());
  for (Id op = 0; op < operator_count(); ++op) {
    const Recipe& recipe = recipes_.operators[op];
    Operator& mine = trace_.operators[op];
    mine.name = recipe.info->name;
    if (recipe.module) mine.module = *recipe.module;
    mine.replayable = !recipe.why_not_replayable && !chains_.goes_on(op) &&
                      recipes_.operators[chains_.last(op)].choice != Choice::keep;
    trace_.operators[chains_.last(op)].cost += static_cast<double>(profile_.costs[op]);
    built_.operators[chains_.last(op)].push_back(op);
    add_inputs(op);
    if (!chains_.goes_on(op)) add_outputs(op);
  }
  for (Operator& op : trace_.operators) {
    sort_unique(op.inputs);
    op.cost = std::max(op.cost, 0.0);
  }
}

// The chain's own values are not values of the trace; those it needs, it needs until its end.
void TraceBuilder::add_inputs(Id op) {
  for (const Reference& reference : recipes_.references_of(op)) {
    if (reference.value == no_value || value_of_[reference.value] < 0) continue;
    trace_.operators[chains_.last(op)].inputs.push_back(value_of_[reference.value]);
  }
}

void TraceBuilder::add_outputs(Id op) {
  Operator& mine = trace_.operators[op];
  for (const Output& output : recipes_.outputs_of(op)) {
    const Id value = value_of_[output.value];
    if (value < 0 || recipes_.values[output.value].maker != op) continue;
    mine.outputs.push_back(value);
    mine.replayable &= !recipes_.values[output.value].must_keep_past_inputs;
  }
}

// A written storage goes over to the next version, where nothing needs the one before any more.
void TraceBuilder::add_takeovers() {
  const Timeline timeline(trace_);
  for (Id op = 0; op < operator_count(); ++op) {
    if (chains_.goes_on(op)) continue;
    const auto writes = recipes_.writes_of(op);
    for (const Output& output : recipes_.outputs_of(op)) {
      if (output.write < 0 || value_of_[output.value] < 0 || writes[output.write].access != Access::write) continue;
      const Id before = writes[output.write].before;
      if (before == no_value || value_of_[before] < 0) continue;
      Value& old = trace_.values[value_of_[before]];
      Value& after = trace_.values[value_of_[output.value]];
      const Id moment = profile_.moment_of[op];
      if (old.bytes != after.bytes || timeline.last_needed(value_of_[before]) != moment) continue;
      after.takes_over = value_of_[before];
      old.held->last = std::min(old.held->last, moment);
    }
  }
}

// ---- moments -------------------------------------------------------------------------------------------------------

// The bytes that the trace has at a moment m are those that were measured. Until an operator has ended, what it makes
// is no value, and was measured among the other bytes; so the meter saw, in new_bytes of the operator of m,
//
//   before m runs:  between(m) = other(m) + taken(m)
//   while m runs:   within(m)  = other(m) + taken(m) + made(m) + workspace(m)
//
// which add_event and add_run solve for other(m) and workspace(m), none of them below zero. An event makes nothing. The
// values inside a chain in place are not in the trace: made(m) and taken(m) of an operator there are a part of its
// workspace, and then other bytes, until the operator runs whose output has their memory.
void TraceBuilder::add_moments() {
  const auto count = static_cast<Id>(profile_.moments.size());
  trace_.moments.resize(profile_.moments.size());
  for (Id m = 0; m < count; ++m) {
    if (profile_.moments[m].op == no_operator) {
      add_event(m);
    } else {
      add_run(m);
    }
  }
  for (Id op = 0; op < operator_count(); ++op) {
    if (chains_.goes_on(op)) add_bytes_inside_chain(op);
  }
}

void TraceBuilder::add_event(Id m) {
  Moment& moment = trace_.moments[m];
  moment.name = profile_.event_name(m);
  moment.cost = static_cast<double>(profile_.moments[m].event_cost);
  for (const Need& need : profile_.needs_of(m)) {
    if (value_of_[need.value] >= 0) moment.needs.push_back(value_of_[need.value]);
  }
  sort_unique(moment.needs);
  moment.other = std::max<Bytes>(0, profile_.other[m].between);
  if (const Bytes workspace = profile_.other[m].within - moment.other; workspace > 0) run_event(moment, workspace);
}

// A node of backward that has bytes of its own while it runs, gradients above all, is an operator that only has
// effects. An event would have them also while values are recomputed for it, when they are not there yet.
void TraceBuilder::run_event(Moment& moment, Bytes workspace) {
  Operator node;
  node.name = std::move(moment.name);
  node.inputs = std::move(moment.needs);
  node.cost = moment.cost;
  node.workspace = workspace;
  node.replayable = false;
  node.event = true;
  const Bytes between = moment.other;
  moment = Moment{};
  moment.runs = static_cast<Id>(trace_.operators.size());
  moment.other = between;
  trace_.operators.push_back(std::move(node));
}

TraceBuilder::NewBytes TraceBuilder::new_bytes(Id op) const {
  NewBytes bytes;
  for (const Output& output : recipes_.outputs_of(op)) {
    const RecordedValue& value = recipes_.values[output.value];
    if (value.maker != op) continue;
    if (output.write < 0) {
      bytes.made += planned_bytes(value);
    } else {
      const Id before = recipes_.writes_of(op)[output.write].before;
      const bool was_other = before == no_value || recipes_.values[before].maker == no_operator;
      if (was_other) bytes.taken += planned_bytes(value);
    }
  }
  return bytes;
}

void TraceBuilder::add_run(Id m) {
  const Id op = profile_.moments[m].op;
  const auto [made, taken] = new_bytes(op);
  const Bytes between = std::max<Bytes>(0, profile_.other[m].between);
  const Bytes workspace = std::max<Bytes>(0, profile_.other[m].within - between - made);
  trace_.moments[m].runs = op;
  trace_.moments[m].other = std::max<Bytes>(0, between - taken);
  // A replay of the chain runs them all, beside the output of the last.
  Operator& last = trace_.operators[chains_.last(op)];
  last.workspace = std::max(last.workspace, workspace);
  if (chains_.goes_on(op)) trace_.operators[op].workspace = workspace + made + taken;
}

void TraceBuilder::add_bytes_inside_chain(Id op) {
  const Id next = chains_.next(op);
  const Bytes bytes = planned_bytes(recipes_.values[recipes_.outputs_of(op)[0].value]);
  const Id until = profile_.moment_of[next] - (chains_.goes_on(next) ? 0 : 1);
  for (Id m = profile_.moment_of[op] + 1; m <= until; ++m) trace_.moments[m].other += bytes;
}

// ---- tiers ---------------------------------------------------------------------------------------------------------

void TraceBuilder::add_packing() {
  Tier tier;
  tier.name = PassTrace::packed;
  for (std::size_t v = 0; v < built_.recorded.size(); ++v) {
    const PackedForm* const form = profile_.form_of(built_.recorded[v]);
    if (!form) continue;
    const auto plain = static_cast<double>(form->plain_bytes());
    tier.entries.push_back({static_cast<Id>(v), meter::counted(form->bytes()), pack_cost * plain, unpack_cost * plain});
  }
  if (!tier.entries.empty()) trace_.tiers.push_back(std::move(tier));
}

// What can be recomputed, so that a copy that is lost costs time and no gradient.
void TraceBuilder::add_tier(const TierCosts& terms) {
  Tier tier;
  tier.name = terms.name;
  tier.capacity = terms.capacity;
  tier.in_budget = false;
  tier.duplex = terms.duplex;
  for (std::size_t v = 0; v < built_.recorded.size(); ++v) {
    const Value& value = trace_.values[v];
    if (!terms.takes(value.bytes) || recipes_.values[built_.recorded[v]].must_keep_past_inputs) continue;
    if (!trace_.operators[*value.maker].replayable) continue;
    tier.entries.push_back({static_cast<Id>(v), value.bytes, terms.put_cost(value.bytes), terms.get_cost(value.bytes),
                            terms.put_time(value.bytes), terms.get_time(value.bytes)});
  }
  if (tier.entries.empty()) return;
  built_.below = tier.name;
  trace_.tiers.push_back(std::move(tier));
}

}  // namespace

PassTrace build_trace(const RecordedPass& pass, const OfferedTiers& tiers) {
  return TraceBuilder(pass).build(tiers);
}

}  // namespace reprise::internal
