#include "reprise/torch/errors.h"

#include <algorithm>
#include <utility>

#include "reprise/trace/amount.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t pinned_named = 6;

// To the byte for programs and bug reports, rounded for people.
std::string exact(Bytes bytes) {
  return std::to_string(bytes) + (bytes < 1024 ? " bytes" : " bytes (" + format_bytes(bytes) + ")");
}

std::string operator_at(const std::string& op, Id index) {
  return "operator " + std::to_string(index) + " '" + printable(op) + "'";
}

std::string pinned(const std::vector<BudgetError::Pinned>& all) {
  std::string text;
  const std::size_t named = std::min(pinned_named, all.size());
  for (std::size_t i = 0; i < named; ++i) {
    text += (i == 0 ? "; pinned: " : ", ") + printable(all[i].what) + " " + format_bytes(all[i].bytes);
  }
  if (named < all.size()) {
    Bytes rest = 0;
    for (std::size_t i = named; i < all.size(); ++i) rest += all[i].bytes;
    text += " and " + std::to_string(all.size() - named) + " more with " + format_bytes(rest);
  }
  return text;
}

std::string sentence(const BudgetError::Facts& facts) {
  if (!facts.refused.empty()) {
    return "[budget] the allocator of " + printable(facts.device) + " refuses " + exact(facts.requested) +
           " that fit the budget of " + exact(facts.budget) + ", with " + std::to_string(facts.live) +
           " live and nothing left to evict. Leave the device more room than the budget. It says: " +
           printable(facts.refused);
  }
  const bool cpu_alone = facts.device == "cpu" && facts.cpu_alone;
  std::string text = "[budget] " + exact(facts.live + facts.requested) + " are needed (" + std::to_string(facts.live) +
                     " live and not evictable + " + std::to_string(facts.requested) + " requested)" +
                     (cpu_alone ? "" : " on " + printable(facts.device)) +
                     (facts.where.empty() ? "" : " in " + printable(facts.where)) + ", the budget is " +
                     exact(facts.budget) + pinned(facts.pinned);
  if (facts.kept_by_policy > 0) {
    text += "; the policy contradicts the budget by " + exact(facts.live + facts.requested - facts.budget) +
            ": it keeps " + exact(facts.kept_by_policy) + " that could be evicted";
  }
  if (facts.smallest_feasible) {
    text += "; the smallest budget with a proven plan is " + exact(*facts.smallest_feasible);
  }
  if (facts.floor) {
    text += "; no plan can do with less than " + exact(*facts.floor) + ", because of " + printable(facts.floor_set_by);
  }
  if (!facts.not_repeated.empty()) return text + ". " + facts.not_repeated;
  if (!facts.smallest_feasible && !facts.floor) {
    text += "; no plan has been made for this step yet, so it is not known which budget will do: ";
    if (!facts.advice.empty()) return text + facts.advice;
    text += cpu_alone ? "Session::measure finds out without the memory, and Session::run plans a step that does not "
                        "fit and runs it again (unless the step asks what it has computed)"
                      : "begin with a larger one, wait for the plan, and lower it by Session::budget";
  }
  return text;
}

std::string sentence(const MismatchError::Facts& facts) {
  if (!facts.draws.empty()) {
    return "[replay] a value of " + operator_at(facts.op, facts.operator_index) +
           " was evicted, and replaying the operator does not draw the same random numbers: " + printable(facts.draws) +
           ". The gradients of this step are not complete: zero them and repeat the step. What the operator makes is "
           "kept from now on";
  }
  std::string where;
  if (facts.blocks > 1) {
    where = " (of its " + std::to_string(facts.blocks) + " blocks of 64 KiB the first that differs is block " +
            std::to_string(facts.block) + ", counted from 0)";
  }
  if (!facts.reloaded_from.empty()) {
    const std::string what = facts.op.empty() ? "a gradient"
                                              : "value " + std::to_string(facts.value) + " of " +
                                                    operator_at(facts.op, facts.operator_index);
    return "[verify] " + what + " came back from the " + facts.reloaded_from + " with other bits than were offloaded" +
           where +
           ". Something wrote into its memory while it was copied, or it was copied before it was complete. The "
           "gradients of this step are not complete: zero them and repeat the step";
  }
  return "[verify] value " + std::to_string(facts.value) + " of " + operator_at(facts.op, facts.operator_index) +
         " was evicted, and replaying the operator does not give the same bits" + where +
         ". Either it depends on something that is not among its inputs, or an input or the value itself was written "
         "through a raw pointer; after such a write, call session.touched(tensor). The gradients of this step are not "
         "complete: zero them and repeat the step. The value is kept from now on";
}

std::string sentence(const ChangedInputError::Facts& facts) {
  std::string argument = "argument " + std::to_string(facts.argument);
  if (!facts.argument_name.empty()) argument += " '" + printable(facts.argument_name) + "'";
  if (facts.no_room) {
    return "[replay] " + argument + " of " + operator_at(facts.op, facts.operator_index) +
           " was overwritten by the program, and there was no room for a copy of what it held before, so that a "
           "evicted value cannot be recomputed from it. Raise the budget, or write to it only after the backward pass "
           "that "
           "needs it";
  }
  if (facts.freed) {
    return "[replay] " + argument + " of " + operator_at(facts.op, facts.operator_index) +
           " was freed by the program, which resized its storage, and does not have the same contents again, so that a "
           "evicted value cannot be recomputed from it. Bring it back before the backward pass that needs it, or free "
           "it only after that";
  }
  return "[replay] " + argument + " of " + operator_at(facts.op, facts.operator_index) +
         " was written while nobody recorded: by another thread, between steps, or after the function that is "
         "checkpointed had returned. So an evicted value cannot be recomputed from it. Write to it inside of the step "
         "or "
         "the function, on its thread, or only after the backward pass that needs it";
}

}  // namespace

BudgetError::BudgetError(Facts facts) : SessionError(sentence(facts)), facts_(std::move(facts)) {}

MismatchError::MismatchError(Facts facts) : SessionError(sentence(facts)), facts_(std::move(facts)) {}

ChangedInputError::ChangedInputError(Facts facts) : SessionError(sentence(facts)), facts_(std::move(facts)) {}

}  // namespace reprise
