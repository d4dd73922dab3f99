#include "chain/pass_actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

[[noreturn]] void fail(const ChainForm& form, const BrokenRule& broken) {
  if (broken.rule == Rule::capacity && form.disk) {
    throw BadOption(
        fmt::format("[chain] disk.budget is {} bytes, and the schedule needs more: {}. Raise it, or give the schedule "
                    "fewer slots on disk",
                    form.tiers[*form.disk].capacity.value_or(largest_bytes), broken.sentence));
  }
  throw BadOption(fmt::format("[chain] the schedule's plan is not valid: {}", broken.sentence));
}

// Steps that are written at a time: their actions are a few kilobytes.
constexpr std::size_t steps_at_a_time = 256;
// A step may depend on this many that follow it.
constexpr std::size_t steps_ahead = 2;

Id tier_count(const ChainTiers& tiers) {
  return (tiers.packed ? 1 : 0) + (tiers.disk ? 1 : 0);
}

}  // namespace

ChainPlan::ChainPlan(ChainForm of, Plan what, std::optional<Bytes> at_most)
    : form(std::move(of)), plan(std::move(what)), limit(at_most), last_get(plan.actions.size(), 0) {
  const Simulation proof = simulate(chain_trace(form), plan, {.record_live = false});
  if (!proof.valid()) fail(form, *proof.broken);

  // From the end: whether a copy is read once more before it is put again.
  std::vector<std::vector<char>> read_later(plan.tiers.size(), std::vector<char>(form.state_value(form.size()) + 1, 0));
  for (std::size_t i = plan.actions.size(); i-- > 0;) {
    const Action& action = plan.actions[i];
    if (action.kind == Action::Kind::put) read_later[action.tier][action.target] = 0;
    if (action.kind != Action::Kind::get) continue;
    char& later = read_later[action.tier][action.target];
    last_get[i] = !later;
    later = 1;
    if (action.tier != form.disk) continue;
    disk_gets.push_back(i);
    disk_states.push_back(form.tapes ? action.target / 2 : action.target);
  }
  std::reverse(disk_gets.begin(), disk_gets.end());
  std::reverse(disk_states.begin(), disk_states.end());
}

PassActions::PassActions(std::shared_ptr<const ChainPlan> plan, std::size_t done)
    : part_{plan->form.part_from.value_or(0),
            plan->form.size(),
            plan->form.tapes,
            {plan->form.packed, plan->form.disk}},
      plan_(std::move(plan)),
      limit_(plan_->limit),
      actions_(&plan_->plan.actions),
      next_(done) {}

PassActions::PassActions(SchedulePointer schedule, std::unique_ptr<ChainDecisions> decisions, const PassPart& part)
    : part_(part),
      schedule_(std::move(schedule)),
      decisions_(std::move(decisions)),
      rules_(std::make_unique<ChainRules>(part.tapes, tier_count(part.tiers))),
      writer_(std::make_unique<StepWriter>(part.tapes, part.tiers, true)),
      actions_(&writer_->actions()) {}

PassActions::PassActions(SchedulePointer schedule, std::unique_ptr<ChainStepSource> source, const PassPart& part)
    : part_(part),
      schedule_(std::move(schedule)),
      source_(std::move(source)),
      rules_(std::make_unique<ChainRules>(part.tapes, tier_count(part.tiers))),
      writer_(std::make_unique<StepWriter>(part.tapes, part.tiers, true)),
      actions_(&writer_->actions()) {
  writer_->set_layers(part.layers);
  rules_->set_layers(part.layers);
}

PassActions PassActions::from_the_start() const {
  if (plan_) return PassActions(plan_);
  if (decisions_) return PassActions(schedule_, schedule_->decisions(), part_);
  return PassActions(schedule_, schedule_->steps(part_.layers), part_);
}

// ---- steps as they come ----

// Writes more actions, and checks them before they are executed.
void PassActions::write_ahead() {
  writer_->erase_actions(next_);
  next_ = 0;
  while (actions_->empty() && source_) {
    const std::size_t had = steps_.size();
    steps_.resize(steps_at_a_time + steps_ahead);
    const std::size_t there = had + source_->fill(std::span(steps_).subspan(had));
    const bool are_all = there < steps_.size();
    const std::size_t count = are_all ? there : steps_at_a_time;
    steps_.resize(there);
    writer_->write(steps_, count);
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(count));
    if (are_all) source_.reset();
  }
  rules_->execute(*actions_, 0, writer_->last_gets());
  if (!source_) rules_->end();
}

// ---- decisions ----

// Writes what was decided about the state that was reached. This happens when that state is the input of the next
// layer.
void PassActions::write_decision(StepWriter& writer, const Decided& decided) const {
  if (decided.decision.evict) writer.discard(*decided.decision.evict, 0);
  if (decided.decision.remember) writer.store(decided.reached, 0);
}

// Ends forward. The last state is the caller's, whatever was decided about it.
void PassActions::write_turn(StepWriter& writer, const Decided& last) const {
  if (last.decision.evict) writer.discard(*last.decision.evict, 0);
  writer.set_layers(part_.layers);
  writer.end_forward();
}

void PassActions::prepare_forward() {
  if (next_ >= steps_at_a_time) {
    writer_->erase_actions(next_);
    next_ = 0;
  }
  const std::size_t had = actions_->size();
  write_decision(*writer_, pending_);
  if (pending_.decision.remember || pending_.decision.evict) decided_.push_back(pending_);
  writer_->advance(pending_.reached + 1);
  pending_ = {pending_.reached + 1, {}};
  rules_->execute(*actions_, had, writer_->last_gets());
}

void PassActions::record_run(Id layer, double cost) {
  part_.layers = std::max(part_.layers, layer + 1);
  if (costs_.empty() || costs_.back().cost != cost) costs_.push_back({layer, cost});
  costs_.back().end = layer + 1;
  pending_.decision = decisions_->reached(cost);
}

void PassActions::turn() {
  if (!decisions_) return;
  has_turned_ = true;
  const std::size_t had = actions_->size();
  part_.layers = pending_.reached;
  write_turn(*writer_, pending_);
  rules_->set_layers(part_.layers);
  rules_->execute(*actions_, had, writer_->last_gets());
  source_ = decisions_->backward_source();
}

void PassActions::enter_costs(ChainForm& form) const {
  Id layer = 0;
  for (const Cost& cost : costs_) {
    for (; layer < std::min(cost.end, form.size()); ++layer) form.layers[layer].forward_cost = cost.cost;
  }
}

// ---- what is asked of the actions ----

const Plan& PassActions::plan(const ChainForm& form) const {
  if (plan_) return plan_->plan;
  if (!written_plan_) {
    StepWriter writer(part_.tapes, part_.tiers, false);
    ChainSteps steps;
    if (decisions_) {
      std::size_t next = 0;
      for (Id state = 0; state < part_.layers; ++state) {
        if (next < decided_.size() && decided_[next].reached == state) write_decision(writer, decided_[next++]);
        writer.advance(state + 1);
      }
      write_turn(writer, pending_);
      steps = all_steps(*decisions_->backward_source());
    } else {
      writer.set_layers(part_.layers);
      steps = all_steps(*schedule_->steps(part_.layers));
    }
    writer.write(steps, steps.size());
    written_plan_ = Plan{largest_bytes, form.tiers, writer.take_actions()};
  }
  return *written_plan_;
}

bool PassActions::is_last_get() const {
  if (plan_) return plan_->last_get[next_ - 1];
  const std::span<const std::size_t> all = writer_->last_gets();
  return std::binary_search(all.begin(), all.end(), next_ - 1);
}

std::span<const Id> PassActions::wanted_from_disk(std::size_t count) const {
  if (!plan_) return {};
  const auto next = std::ranges::lower_bound(plan_->disk_gets, next_) - plan_->disk_gets.begin();
  const auto left = std::span(plan_->disk_states).subspan(static_cast<std::size_t>(next));
  return left.first(std::min(count, left.size()));
}

}  // namespace reprise::internal
