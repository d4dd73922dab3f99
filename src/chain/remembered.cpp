// Which states a schedule remembers, asked before anything has run.
#include <fmt/format.h>

#include <vector>

#include "reprise/chain/schedule.h"
#include "reprise/trace/error.h"

namespace reprise {
namespace {

std::vector<bool> by_decisions(ChainDecisions& decisions, const ChainForm& form) {
  std::vector<bool> remembered(static_cast<std::size_t>(form.size()) + 1, false);
  remembered[0] = true;
  for (Id k = 1; k <= form.size(); ++k) {
    const ChainDecisions::Decision decision = decisions.reached(form.layers[k - 1].forward_cost);
    if (decision.evict) remembered[*decision.evict] = false;
    if (decision.remember) remembered[k] = true;
  }
  return remembered;
}

// What the plan holds, in whatever tier, when the last layer has run for the first time.
std::vector<bool> by_plan(const Plan& plan, const ChainForm& form) {
  const auto states = static_cast<std::size_t>(form.size()) + 1;
  std::vector<bool> held(states, false), put(states, false);
  held[0] = true;
  for (const Action& action : plan.actions) {
    const bool of_forward = action.kind == Action::Kind::run && action.target < form.size();
    if (of_forward) held[action.target + 1] = true;
    if (action.kind == Action::Kind::run && !of_forward) break;
    if (action.kind == Action::Kind::replay || action.kind == Action::Kind::get) break;
    if (of_forward || (form.tapes && action.target % 2 != 0)) continue;
    const Id state = form.tapes ? action.target / 2 : action.target;
    if (action.kind == Action::Kind::put) put[state] = true;
    if (action.kind == Action::Kind::drop) held[state] = false;
  }
  for (std::size_t k = 0; k < states; ++k) held[k] = held[k] || put[k];
  return held;
}

bool is_remembered(const Schedule& schedule, const ChainForm& form, Id position, Id state) {
  if (position < 0 || position >= form.size()) {
    throw BadOption(
        fmt::format("[chain] remembers({}): there is no such layer, the chain has {}", position, form.size()));
  }
  if (state == form.size()) return false;
  if (const auto decisions = schedule.decisions()) return by_decisions(*decisions, form)[state];
  if (!schedule.needs_disk() || form.disk) return by_plan(schedule.plan(form), form)[state];
  ChainForm with_disk = form;
  add_disk_tier(with_disk, 0, 0);
  return by_plan(schedule.plan(with_disk), with_disk)[state];
}

ChainForm form_of(const Schedule& schedule, Id layers) {
  if (layers < 0) throw BadOption(fmt::format("[chain] layers is {}: it cannot be negative", layers));
  if (schedule.needs_sizes()) {
    throw BadOption(
        fmt::format("[chain] {} depends on the sizes of the layers: ask with a form, such as the chain's sizes()",
                    schedule.text()));
  }
  return equal_layers(layers);
}

}  // namespace

Plan Schedule::plan(const ChainForm&) const {
  throw BadOption(
      fmt::format("[chain] {} decides while forward goes on: there is no plan before forward is over", text()));
}

bool Schedule::remembers(Id layers, Id position) const {
  return remembers(form_of(*this, layers), position);
}
bool Schedule::remembers(const ChainForm& form, Id position) const {
  return is_remembered(*this, form, position, position + 1);
}
bool Schedule::remembers_before(Id layers, Id position) const {
  return remembers_before(form_of(*this, layers), position);
}
bool Schedule::remembers_before(const ChainForm& form, Id position) const {
  return is_remembered(*this, form, position, position);
}

}  // namespace reprise
