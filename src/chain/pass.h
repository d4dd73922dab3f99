// The actions of one pass through a chain. They are known from the start, or written as far as decisions have been
// made, or as they are executed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "chain/chain_rules.h"
#include "chain/step_writer.h"
#include "reprise/chain/form.h"
#include "reprise/chain/schedule.h"
#include "reprise/trace/plan.h"

namespace reprise::internal {

// A plan, with the facts that its executor would have to look ahead for.
struct ChainScript {
  ChainForm form;  // of the layers that it is for
  Plan plan;
  std::optional<Bytes> limit;   // of the bytes that the chain may hold, those on their way included
  std::vector<char> last_get;   // by action: a get after which the copy need not stay
  std::vector<Id> disk_states;  // of all gets from the disk, in order
  // Throws BadOption with the interpreter's sentence if the plan is not valid for this chain.
  ChainScript(ChainForm, Plan, std::optional<Bytes> limit = std::nullopt);
};

class ChainPass {
 public:
  // Makes a pass that follows a script, of which some actions are done.
  explicit ChainPass(std::shared_ptr<const ChainScript>, std::size_t done = 0);
  // Makes a pass that decides as it goes. The form is that of all layers, or, if their number is unknown, of none.
  ChainPass(std::unique_ptr<ChainDecisions>, ChainForm);
  // Makes a pass that takes the steps of a schedule as they come, all states held as they are.
  ChainPass(SchedulePointer, Id layers, bool tapes);

  // ---- the layers ----

  [[nodiscard]] Id layers() const { return layers_; }  // so far
  [[nodiscard]] bool tapes() const { return tapes_; }
  [[nodiscard]] Id state_value(Id state) const { return tapes_ ? 2 * state : state; }
  [[nodiscard]] Id tape_value(Id layer) const { return 2 * layer + 1; }
  [[nodiscard]] bool is_tape(Id value) const { return tapes_ && value % 2 != 0; }
  [[nodiscard]] Id state_of(Id value) const { return tapes_ ? value / 2 : value; }
  [[nodiscard]] bool is_disk(Id tier) const { return tier == disk_; }
  // Returns the form that the plan was made for. Null if it was made for the number of layers alone.
  [[nodiscard]] const ChainForm* form() const { return script_ ? &script_->form : decisions_ ? &form_ : nullptr; }
  // Returns the limit of the bytes that the chain may hold. Empty: none, and the sizes of the form mean nothing.
  [[nodiscard]] std::optional<Bytes> limit() const { return script_ ? script_->limit : std::nullopt; }

  // ---- the actions ----

  // Returns the next action. Null if there is none, or none yet.
  [[nodiscard]] const Action* next() {
    if (next_ == actions_->size() && source_) write_ahead();
    return next_ < actions_->size() ? &(*actions_)[next_] : nullptr;
  }
  void took() { ++next_; }
  // True if this value is dropped before anything else but drops happens.
  [[nodiscard]] bool drops_soon(Id value) {
    (void)next();
    for (std::size_t k = next_; k < actions_->size() && (*actions_)[k].kind == Action::Kind::drop; ++k) {
      if ((*actions_)[k].target == value) return true;
    }
    return false;
  }
  // Adds the actions up to the next layer's forward. Does nothing if all actions are there.
  void prepare_forward() {
    if (decisions_ && !script_) write_forward();
  }
  // Records that the prepared layer has run for the first time, at this cost.
  void ran(Id layer, double cost) {
    if (decisions_) decide(layer, cost);
  }
  // Ends forward: everything is known from now on.
  void turn();

  // Of the get that was taken last: whether the copy need not stay.
  [[nodiscard]] bool is_last_get() const;
  // Returns the next states that are wanted from the disk, after the first `had` of them.
  [[nodiscard]] std::span<const Id> wanted_from_disk(std::size_t had, std::size_t count) const;
  // Returns the plan. Null while decisions are being made. That of a pass that takes steps as they come is written when
  // it is first asked for.
  [[nodiscard]] const Plan* plan() const;

 private:
  void write_forward();
  void write_ahead();
  void decide(Id layer, double cost);

  Id layers_;
  bool tapes_;
  std::optional<Id> disk_;

  std::shared_ptr<const ChainScript> script_;

  // Of a pass that decides as it goes.
  std::unique_ptr<ChainDecisions> decisions_;
  ChainForm form_;
  ChainDecisions::Decision pending_{true, std::nullopt};  // about the state that was reached last
  Id reached_ = 0;

  // Of a pass that takes steps as they come.
  SchedulePointer schedule_;
  std::unique_ptr<ChainStepSource> source_;
  std::optional<ChainStep> following_;  // the step that is written next
  std::optional<ChainRules> rules_;
  mutable std::optional<Plan> plan_;  // if it was asked for

  std::unique_ptr<StepWriter> writer_;
  const std::vector<Action>* actions_;
  std::size_t next_ = 0;
};

}  // namespace reprise::internal
