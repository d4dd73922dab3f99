#include "chain/pass.h"

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

// The layers may have come one by one.
void name_all_states(ChainForm& form) {
  const auto states = static_cast<std::size_t>(form.size()) + 1;
  const bool packed = form.packed.has_value(), disk = form.disk.has_value();
  if (std::ranges::all_of(form.tiers, [&](const Tier& tier) { return tier.entries.size() == states; })) return;
  form.tiers.clear();
  if (packed) add_packed_tier(form);
  if (disk) add_disk_tier(form, 0, 0);
}

}  // namespace

ChainScript::ChainScript(ChainForm of, Plan what, std::optional<Bytes> at_most)
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
    if (action.tier == form.disk) disk_states.push_back(form.tapes ? action.target / 2 : action.target);
  }
  std::reverse(disk_states.begin(), disk_states.end());
}

ChainPass::ChainPass(std::shared_ptr<const ChainScript> script, std::size_t done)
    : layers_(script->form.size()),
      tapes_(script->form.tapes),
      disk_(script->form.disk),
      script_(std::move(script)),
      actions_(&script_->plan.actions),
      next_(done) {}

ChainPass::ChainPass(std::unique_ptr<ChainDecisions> decisions, ChainForm form)
    : layers_(form.size()),
      tapes_(form.tapes),
      disk_(form.disk),
      decisions_(std::move(decisions)),
      form_(std::move(form)),
      writer_(std::make_unique<StepWriter>(form_.tapes, form_.packed, form_.disk)),
      actions_(&writer_->actions()) {}

ChainPass::ChainPass(SchedulePointer schedule, Id layers, bool tapes)
    : layers_(layers),
      tapes_(tapes),
      schedule_(std::move(schedule)),
      source_(schedule_->steps(layers)),
      following_(source_->next()),
      rules_(std::in_place, layers, tapes),
      writer_(std::make_unique<StepWriter>(tapes, std::nullopt, std::nullopt)),
      actions_(&writer_->actions()) {
  writer_->layers(layers);
}

void ChainPass::write_forward() {
  // What was decided about the state that was reached takes place now, when the next layer has it as its input.
  if (pending_.give_up) writer_->discard(*pending_.give_up, 0);
  if (pending_.remember) writer_->store(reached_, 0);
  pending_ = {};
  writer_->advance(++reached_);
}

void ChainPass::decide(Id layer, double cost) {
  if (layer == form_.size()) form_.layers.emplace_back();
  form_.layers[layer].forward_cost = cost;
  layers_ = form_.size();
  pending_ = decisions_->reached(cost);
}

// Every action is checked before it is executed.
void ChainPass::write_ahead() {
  writer_->clear_actions();
  next_ = 0;
  while (actions_->empty() && following_) {
    const ChainStep step = *following_;
    following_ = source_->next();
    writer_->write(step, following_ ? &*following_ : nullptr);
  }
  for (const Action& action : *actions_) rules_->execute(action);
  if (!following_) rules_->end();
}

void ChainPass::turn() {
  if (!decisions_) return;
  // The last state is the caller's, whatever was decided about it; nobody needs it here.
  if (pending_.give_up) writer_->discard(*pending_.give_up, 0);
  writer_->layers(reached_);
  writer_->end_forward();
  writer_->write(decisions_->backward_steps());
  name_all_states(form_);
  Plan plan{largest_bytes, form_.tiers, writer_->take_actions()};
  script_ = std::make_shared<ChainScript>(std::move(form_), std::move(plan));
  actions_ = &script_->plan.actions;
}

const Plan* ChainPass::plan() const {
  if (script_) return &script_->plan;
  if (!schedule_) return nullptr;
  if (!plan_) {
    StepWriter writer(tapes_, std::nullopt, std::nullopt);
    writer.layers(layers_);
    writer.write(all_steps(*schedule_->steps(layers_)));
    plan_ = Plan{largest_bytes, {}, writer.take_actions()};
  }
  return &*plan_;
}

bool ChainPass::is_last_get() const {
  // While decisions are made, the only gets are those of copies that are given up.
  return !script_ || script_->last_get[next_ - 1];
}

std::span<const Id> ChainPass::wanted_from_disk(std::size_t had, std::size_t count) const {
  if (!script_ || had >= script_->disk_states.size()) return {};
  const std::span<const Id> all = script_->disk_states;
  return all.subspan(had, std::min(count, all.size() - had));
}

}  // namespace reprise::internal
