#include "reprise/chain/pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "chain/step_writer.h"
#include "reprise/simulate/simulate.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;

ChainScript::ChainScript(const ChainForm& form, Plan what) : plan(std::move(what)), last_get(plan.actions.size(), 0) {
  const Simulation proof = simulate(chain_trace(form), plan, {.record_live = false});
  if (!proof.valid())
    throw BadOption(fmt::format("[chain] the schedule's plan is not valid: {}", proof.broken->sentence));

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

ChainPass::ChainPass(std::shared_ptr<const ChainScript> script)
    : script_(std::move(script)), actions_(&script_->plan.actions) {}

ChainPass::ChainPass(std::unique_ptr<ChainDecisions> decisions, const ChainForm& form)
    : decisions_(std::move(decisions)),
      writer_(std::make_unique<StepWriter>(form.tapes, form.packed, form.disk)),
      actions_(&writer_->actions()) {}

ChainPass::~ChainPass() = default;
ChainPass::ChainPass(ChainPass&&) noexcept = default;
ChainPass& ChainPass::operator=(ChainPass&&) noexcept = default;

void ChainPass::prepare_forward() {
  if (script_) return;
  // What was decided about the state that was reached takes place now, when the next layer has it as its input.
  if (pending_.give_up) writer_->discard(*pending_.give_up, 0);
  if (pending_.remember) writer_->store(reached_, 0);
  pending_ = {};
  writer_->advance(++reached_);
}

void ChainPass::ran(double cost) {
  if (!script_) pending_ = decisions_->reached(cost);
}

void ChainPass::turn(const ChainForm& form) {
  if (script_) return;
  // The last state is the caller's, whatever was decided about it; nobody needs it here.
  if (pending_.give_up) writer_->discard(*pending_.give_up, 0);
  writer_->layers(reached_);
  writer_->end_forward();
  writer_->write(decisions_->backward_steps());
  Plan plan{largest_bytes, form.tiers, writer_->take_actions()};
  script_ = std::make_shared<ChainScript>(form, std::move(plan));
  actions_ = &script_->plan.actions;
}

bool ChainPass::is_last_get(std::size_t action) const {
  // While decisions are made, the only gets are those of copies that are given up.
  return !script_ || script_->last_get[action];
}

std::span<const Id> ChainPass::wanted_from_disk(std::size_t had, std::size_t count) const {
  if (!script_ || had >= script_->disk_states.size()) return {};
  const std::span<const Id> all = script_->disk_states;
  return all.subspan(had, std::min(count, all.size() - had));
}

}  // namespace reprise
