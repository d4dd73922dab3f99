// The actions of one pass through a chain, and which of them is next. All of them are known from the start, or they are
// written as far as decisions have been made, or as they are executed.
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

// A plan that was checked, with the facts that its executor would have to look ahead for.
struct ChainPlan {
  ChainForm form;  // of the layers that it is for
  Plan plan;
  std::optional<Bytes> limit;  // of the bytes that the chain may hold, those on their way included
  std::vector<char> last_get;  // by action: a get after which the copy need not stay
  // All gets from the disk, in order: which actions they are, and of which states.
  std::vector<std::size_t> disk_gets;
  std::vector<Id> disk_states;
  // Throws BadOption with the interpreter's sentence if the plan is not valid for this chain.
  ChainPlan(ChainForm, Plan, std::optional<Bytes> limit = std::nullopt);
};

// The layers that a pass goes through, and the tiers it has for states.
struct PassPart {
  Id first = 0;   // layer of the chain
  Id layers = 0;  // 0 if their number is unknown
  bool tapes = false;
  ChainTiers tiers;
};

class PassActions {
 public:
  // Follows a plan, of which some actions are done.
  explicit PassActions(std::shared_ptr<const ChainPlan>, std::size_t done = 0);
  // Decides while forward goes on.
  PassActions(SchedulePointer, std::unique_ptr<ChainDecisions>, const PassPart&);
  // Takes the steps of a schedule as they come.
  PassActions(SchedulePointer, std::unique_ptr<ChainStepSource>, const PassPart&);
  // Returns the same actions from the first one on, for a number of layers that is known.
  [[nodiscard]] PassActions from_the_start() const;

  // ---- the layers ----

  [[nodiscard]] Id first() const { return part_.first; }
  [[nodiscard]] Id layers() const { return part_.layers; }  // so far
  [[nodiscard]] bool has_tapes() const { return part_.tapes; }
  [[nodiscard]] Id state_value(Id state) const { return part_.tapes ? 2 * state : state; }
  [[nodiscard]] Id tape_value(Id layer) const { return 2 * layer + 1; }
  [[nodiscard]] bool is_tape(Id value) const { return part_.tapes && value % 2 != 0; }
  [[nodiscard]] Id state_of(Id value) const { return part_.tapes ? value / 2 : value; }
  [[nodiscard]] bool is_disk(Id tier) const { return tier == part_.tiers.disk; }
  // Returns the form that the plan was made for. Null if it was not made for a form.
  [[nodiscard]] const ChainForm* form() const { return plan_ ? &plan_->form : nullptr; }
  // Returns the limit of the bytes that the chain may hold. Empty: none, and the sizes of the form mean nothing.
  [[nodiscard]] const std::optional<Bytes>& limit() const { return limit_; }

  // ---- the actions ----

  // Returns the next action. Null if there is none, or none yet.
  [[nodiscard]] const Action* next() {
    if (next_ == actions_->size() && source_) write_ahead();
    return next_ < actions_->size() ? actions_->data() + next_ : nullptr;
  }
  void advance() { ++next_; }
  // Sets whether runs and replays of steps as they come may stand for several layers: see step_writer.h.
  void set_joining(bool on) {
    joins_ = on && source_ && !decisions_;
    if (joins_) writer_->set_joining(true);
  }
  // Returns how many layers a run or replay stands for beside its own, and how: see step_writer.h.
  [[nodiscard]] Id more_layers(const Action& action) const { return joins_ ? action.tier : 0; }
  // True if this value is dropped before anything else but drops happens.
  [[nodiscard]] bool is_dropped_soon(Id value) {
    (void)next();
    for (std::size_t k = next_; k < actions_->size() && (*actions_)[k].kind == Action::Kind::drop; ++k) {
      if ((*actions_)[k].target == value) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_decisions() const { return decisions_ != nullptr; }
  // Adds the actions up to the next layer's forward. Only with decisions.
  void prepare_forward();
  // Records that the prepared layer has run for the first time, at this cost. Only with decisions.
  void record_run(Id layer, double cost);
  // Ends forward. All actions are known from now on, or follow from steps.
  void turn();

  // True if the copy that the last action was a get of need not stay.
  [[nodiscard]] bool is_last_get() const;
  // Returns the states that the next gets from the disk want, at most this many.
  [[nodiscard]] std::span<const Id> wanted_from_disk(std::size_t count) const;

  // ---- the whole plan ----

  // True while decisions are being made, so that there is no plan yet.
  [[nodiscard]] bool is_deciding() const { return decisions_ && !has_turned_; }
  // Returns the plan. A plan that was never in memory is written now, with the tiers of this form.
  [[nodiscard]] const Plan& plan(const ChainForm&) const;
  // Writes the costs that the layers had in a pass with decisions to a form.
  void enter_costs(ChainForm&) const;

 private:
  void write_ahead();

  // What was decided when a state was reached.
  struct Decided {
    Id reached = 0;
    ChainDecisions::Decision decision;
  };
  void write_decision(StepWriter&, const Decided&) const;
  void write_turn(StepWriter&, const Decided&) const;

  PassPart part_;
  std::shared_ptr<const ChainPlan> plan_;
  std::optional<Bytes> limit_;
  SchedulePointer schedule_;  // if there is no plan

  // Of a pass with decisions.
  std::unique_ptr<ChainDecisions> decisions_;
  Decided pending_{0, {true, std::nullopt}};  // about the state that was reached last
  std::vector<Decided> decided_;              // before it, where anything is to be done
  struct Cost {
    Id end;  // layers from where the one before ends
    double cost;
  };
  std::vector<Cost> costs_;
  bool has_turned_ = false;

  // Of a pass that takes steps as they come.
  std::unique_ptr<ChainStepSource> source_;  // null when it has no more steps
  std::vector<ChainStep> steps_;             // that are not written yet
  std::unique_ptr<ChainRules> rules_;
  bool joins_ = false;
  mutable std::optional<Plan> written_plan_;  // once it was asked for

  std::unique_ptr<StepWriter> writer_;
  const std::vector<Action>* actions_;
  std::size_t next_ = 0;
};

}  // namespace reprise::internal
