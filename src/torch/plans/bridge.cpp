#include "torch/plans/bridge.h"

#include <algorithm>

#include "reprise/trace/timeline.h"
#include "torch/memory/meter.h"
#include "torch/offload/packed_copy.h"
#include "torch/plans/executable_plan_writer.h"

namespace reprise::internal {
namespace {

constexpr const char* name_of_packed = "packed";

// At the device that plans are made for.
Bytes planned_bytes(const RecordedValue& value) {
  return value.device == 0 ? value.bytes : 0;
}

// The tier of this name in a plan, which may be another program's.
Id tier_of(const Plan& plan, const std::string& name) {
  const auto found =
      std::find_if(plan.tiers.begin(), plan.tiers.end(), [&](const Tier& tier) { return tier.name == name; });
  return found == plan.tiers.end() ? -1 : static_cast<Id>(found - plan.tiers.begin());
}

}  // namespace

Bridge::Bridge(const RecordedPass& pass, const OfferedTiers& tiers) : chains_(pass), other_(pass.other) {
  add_values(pass);
  add_operators(pass);
  add_moments(pass);
  check(trace_);
  add_takeovers(pass);
  if (tiers.pack) add_packing(pass);
  if (tiers.below) add_tier(pass, *tiers.below);
  check(trace_);
}

void Bridge::add_values(const RecordedPass& pass) {
  const Recipes& recipes = *pass.recipes;
  const Id last = static_cast<Id>(pass.seen.moments.size()) - 1;
  value_of_.assign(recipes.values.size(), -1);
  released_.assign(recipes.values.size(), last);
  for (Id op = 0; op < static_cast<Id>(recipes.operators.size()); ++op) {
    if (chains_.goes_on(op)) continue;
    for (const Output& output : recipes.outputs_of(op)) {
      const RecordedValue& recorded = recipes.values[output.value];
      if (recorded.maker != op || value_of_[output.value] >= 0) continue;
      const Id made = pass.seen.moment_of[op];
      Id released = last;
      if (static_cast<std::size_t>(output.value) < pass.seen.released.size() && pass.seen.released[output.value] >= 0) {
        released = pass.seen.released[output.value];
      }
      released_[output.value] = std::max(made, released);
      value_of_[output.value] = static_cast<Id>(trace_.values.size());
      recorded_.push_back(output.value);
      Value value;
      value.bytes = planned_bytes(recorded);
      value.maker = 0;  // below
      value.held = Stretch{made, released_[output.value]};
      trace_.values.push_back(value);
    }
  }
}

// One for each recorded operator, so that moments stay what they were; those inside a chain have neither outputs nor
// cost, and the last one has the inputs and the cost of all.
void Bridge::add_operators(const RecordedPass& pass) {
  const Recipes& recipes = *pass.recipes;
  const auto count = recipes.operators.size();
  trace_.operators.resize(count);
  operators_.resize(count);
  for (Id op = 0; op < static_cast<Id>(count); ++op) operators_[chains_.last(op)].push_back(op);
  for (Id op = 0; op < static_cast<Id>(count); ++op) {
    Operator& mine = trace_.operators[op];
    mine.name = recipes.operators[op].info->name;
    if (const std::string* const module = recipes.operators[op].module) mine.module = *module;
    Operator& last = trace_.operators[chains_.last(op)];
    last.cost += static_cast<double>(pass.costs[op]);
    for (const Reference& reference : recipes.references_of(op)) {
      if (reference.value == no_value || value_of_[reference.value] < 0) continue;
      // The chain's own values are not values of the trace; those it needs, it needs until its end.
      last.inputs.push_back(value_of_[reference.value]);
    }
    mine.replayable = !recipes.operators[op].why_not_replayable && !chains_.goes_on(op) &&
                      recipes.operators[chains_.last(op)].choice != Choice::keep;
    if (chains_.goes_on(op)) continue;
    for (const Output& output : recipes.outputs_of(op)) {
      const Id value = value_of_[output.value];
      if (value < 0 || recipes.values[output.value].maker != op) continue;
      mine.outputs.push_back(value);
      mine.replayable &= !recipes.values[output.value].must_keep_past_inputs;
      trace_.values[value].maker = op;
    }
  }
  for (Operator& op : trace_.operators) {
    std::sort(op.inputs.begin(), op.inputs.end());
    op.inputs.erase(std::unique(op.inputs.begin(), op.inputs.end()), op.inputs.end());
    op.cost = std::max(op.cost, 0.0);
  }
}

// A written storage goes over to the next version, where nobody needs the one before any more.
void Bridge::add_takeovers(const RecordedPass& pass) {
  const Recipes& recipes = *pass.recipes;
  const Timeline timeline(trace_);
  for (Id op = 0; op < static_cast<Id>(recipes.operators.size()); ++op) {
    if (chains_.goes_on(op)) continue;
    const auto writes = recipes.writes_of(op);
    for (const Output& output : recipes.outputs_of(op)) {
      if (output.write < 0 || value_of_[output.value] < 0 || writes[output.write].access != Access::write) continue;
      const Id before = writes[output.write].before;
      if (before == no_value || value_of_[before] < 0) continue;
      Value& old = trace_.values[value_of_[before]];
      Value& after = trace_.values[value_of_[output.value]];
      const Id moment = pass.seen.moment_of[op];
      if (old.bytes != after.bytes || timeline.last_needed(value_of_[before]) != moment) continue;
      after.takes_over = value_of_[before];
      old.held->last = std::min(old.held->last, moment);
    }
  }
}

void Bridge::add_moments(const RecordedPass& pass) {
  const Recipes& recipes = *pass.recipes;
  const Observations& seen = pass.seen;
  trace_.moments.resize(seen.moments.size());
  events_.resize(seen.moments.size(), 0);
  auto need = seen.needs.begin();
  for (std::size_t m = 0; m < seen.moments.size(); ++m) {
    Moment& moment = trace_.moments[m];
    const OtherBytes& other = pass.other[m];
    moment.other = std::max<Bytes>(0, other.between);
    if (seen.moments[m].op == no_operator) {
      moment.name = seen.event_name(static_cast<Id>(m));
      events_[m] = seen.moments[m].name;
      moment.cost = static_cast<double>(seen.moments[m].cost);
      for (; need != seen.needs.end() && need->moment == static_cast<Id>(m); ++need) {
        if (value_of_[need->value] >= 0) moment.needs.push_back(value_of_[need->value]);
      }
      std::sort(moment.needs.begin(), moment.needs.end());
      moment.needs.erase(std::unique(moment.needs.begin(), moment.needs.end()), moment.needs.end());
      if (const Bytes workspace = other.within - moment.other; workspace > 0) run_event(moment, workspace);
      continue;
    }
    const Id op = seen.moments[m].op;
    moment.runs = op;
    // While it ran, what it made was among the other bytes; so was what it wrote into, if that was no value before.
    Bytes made = 0, taken = 0;
    for (const Output& output : recipes.outputs_of(op)) {
      const RecordedValue& value = recipes.values[output.value];
      if (value.maker != op) continue;
      if (output.write < 0) {
        made += planned_bytes(value);
      } else if (recipes.writes_of(op)[output.write].before == no_value) {
        taken += planned_bytes(value);
      }
    }
    moment.other = std::max<Bytes>(0, moment.other - taken);
    const Bytes workspace = std::max<Bytes>(0, other.within - std::max<Bytes>(0, other.between) - made);
    Operator& last = trace_.operators[chains_.last(op)];
    last.workspace = std::max(last.workspace, workspace);
    if (chains_.goes_on(op)) trace_.operators[op].workspace = workspace + made + taken;
  }
  // Inside a chain the bytes of its value are live, and no value of the trace has them.
  for (Id op = 0; op < static_cast<Id>(recipes.operators.size()); ++op) {
    if (!chains_.goes_on(op)) continue;
    const Id next = chains_.next(op);
    const Bytes bytes = planned_bytes(recipes.values[recipes.outputs_of(op)[0].value]);
    const Id until = seen.moment_of[next] - (chains_.goes_on(next) ? 0 : 1);
    for (Id m = seen.moment_of[op] + 1; m <= until; ++m) trace_.moments[m].other += bytes;
  }
}

// A node of backward that has bytes of its own while it runs, gradients above all, is an operator that only has
// effects. An event would have them also while values are recomputed for it, when they are not there yet.
void Bridge::run_event(Moment& moment, Bytes workspace) {
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

void Bridge::add_packing(const RecordedPass& pass) {
  forms_ = pass.seen.forms;
  forms_.resize(pass.recipes->values.size());
  Tier packed;
  packed.name = name_of_packed;
  for (std::size_t v = 0; v < recorded_.size(); ++v) {
    const auto& form = forms_[recorded_[v]];
    if (!form) continue;
    const auto plain = static_cast<double>(form->plain_bytes());
    packed.entries.push_back(
        {static_cast<Id>(v), meter::counted(form->bytes()), pack_cost * plain, unpack_cost * plain});
  }
  if (!packed.entries.empty()) trace_.tiers.push_back(std::move(packed));
}

// What can be recomputed, so that a copy that is lost costs time and no gradient.
void Bridge::add_tier(const RecordedPass& pass, const TierCosts& terms) {
  Tier below;
  below.name = terms.name;
  below.capacity = terms.capacity;
  below.in_budget = false;
  below.duplex = terms.duplex;
  for (std::size_t v = 0; v < recorded_.size(); ++v) {
    const Value& value = trace_.values[v];
    if (!terms.takes(value.bytes) || pass.recipes->values[recorded_[v]].must_keep_past_inputs) continue;
    if (!trace_.operators[*value.maker].replayable) continue;
    below.entries.push_back({static_cast<Id>(v), value.bytes, terms.put_cost(value.bytes), terms.get_cost(value.bytes),
                             terms.put_time(value.bytes), terms.get_time(value.bytes)});
  }
  if (below.entries.empty()) return;
  name_of_below_ = below.name;
  trace_.tiers.push_back(std::move(below));
}

// ---- back ----------------------------------------------------------------------------------------------------------

std::shared_ptr<const ExecutablePlan> Bridge::executable(const Plan& plan, const Simulation& simulation,
                                                         double gap) const {
  const Id packed = tier_of(plan, name_of_packed), below = tier_of(plan, name_of_below_);
  auto executable = std::make_shared<ExecutablePlan>();
  executable->peak = simulation.peak;
  executable->plain_cost = trace_.total_cost();
  executable->added_cost = simulation.cost - executable->plain_cost;
  executable->gap = gap;
  executable->events = events_;
  executable->forms = forms_;
  ExecutablePlanWriter writer(*executable, trace_.moment_count(), value_of_.size(), plan.budget);
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Action& action = plan.actions[i];
    if (action.kind != Action::Kind::drop) writer.live(simulation.live[i]);
    switch (action.kind) {
      case Action::Kind::run: writer.run(action.target); break;
      case Action::Kind::replay: writer.replay(replay_of(*trace_.moments[action.target].runs)); break;
      case Action::Kind::drop: writer.drop(recorded_[action.target]); break;
      case Action::Kind::put:
      case Action::Kind::get: {
        const Id value = recorded_[action.target];
        const bool put = action.kind == Action::Kind::put;
        if (action.tier == below) put ? writer.put(value) : writer.get(value);
        if (action.tier == below && put) {
          const TierEntry& entry = *plan.tiers[below].find(action.target);
          ++executable->below.puts;
          executable->below.bytes += entry.bytes;
          executable->below.both_ways += entry.put_cost + entry.get_cost + entry.put_time + entry.get_time;
        }
        if (action.tier == packed) put ? writer.pack(value) : writer.unpack(value);
        break;
      }
    }
  }
  writer.finish(recorded_);
  executable->other = executable->most_other = other_;
  for (std::size_t m = 0; m < other_.size(); ++m) {
    executable->most_other[m].between += writer.room()[m];
    executable->most_other[m].within += writer.room()[m];
  }
  // A value that the plan has for longer than the program is ours from the start.
  for (const Id value : recorded_) executable->owned[value] = writer.first_drop(value) > released_[value];
  return executable;
}

ExecutablePlan::Replay Bridge::replay_of(Id op) const {
  ExecutablePlan::Replay replay{operators_[op], {}};
  for (const Id value : trace_.operators[op].outputs) replay.outputs.push_back(recorded_[value]);
  return replay;
}

}  // namespace reprise::internal
