// The settings of a chain, and the passes that follow from them.
#pragma once

#include <memory>
#include <span>

#include "chain/pass_actions.h"
#include "chain/pass_planner.h"
#include "chain/state_tiers.h"
#include "reprise/chain/any_chain.h"

namespace reprise::internal {

// The sizes of the state that a pass begins with.
struct InputSizes {
  Bytes bytes = 0;
  Bytes coded = 0;  // with the codec; without one the same
  Bytes room = 0;   // that coding it takes
};

class ChainSetup {
 public:
  ChainSetup(ChainLayers, bool tapes);

  void set_schedule(SchedulePointer);
  [[nodiscard]] const SchedulePointer& schedule() const { return schedule_; }
  void set_enabled(bool on) { is_enabled_ = on, ++changes_; }
  [[nodiscard]] bool is_enabled() const { return is_enabled_; }
  // Sets sizes and costs. Throws BadOption for another number of layers, and for numbers that make no sense.
  void set_sizes(ChainForm, const StateTierSettings&);
  // Sets sizes and costs that were measured, with those of every state in the tiers. A gradient is taken to be as large
  // as its state.
  void set_measured(ChainForm, std::span<const StateTierCosts> packed, std::span<const StateTierCosts> disk,
                    const StateTierSettings&);
  // Sets sizes that were measured in a pass, with its tiers.
  void set_measured_again(ChainForm);
  // Says that the tiers have changed.
  void tiers_changed();

  [[nodiscard]] PassPlanner& planner() { return planner_; }
  [[nodiscard]] const ChainLayers& layers() const { return layers_; }
  [[nodiscard]] bool has_tapes() const { return tapes_; }
  // Returns the form of all layers; of none if their number is unknown.
  [[nodiscard]] const ChainForm& form() const;
  [[nodiscard]] double forward_cost(Id layer) const;
  [[nodiscard]] bool has_sizes() const { return has_sizes_; }
  // True if the next pass is planned for the sizes of the form.
  [[nodiscard]] bool needs_sizes() const { return is_enabled_ && schedule_->needs_sizes(); }
  // Returns the most bytes that the next pass may hold.
  [[nodiscard]] Bytes limit() const { return schedule_->limit().value_or(largest_bytes); }
  [[nodiscard]] bool are_gradients_assumed() const { return are_gradients_assumed_; }

  // Returns the actions of a new pass. The plan is made if anything has changed since the last pass. Throws ChainError
  // if something is missing that the schedule needs, BadOption if it has no plan.
  [[nodiscard]] PassActions begin(const StateTierSettings&, const InputSizes&);
  // Returns the form of the layers from `first` to `end`, or of `end` layers if their number is unknown.
  [[nodiscard]] ChainForm form_of_part(Id first, Id end, const StateTierSettings&) const;
  // Returns the actions of a new pass through some of the layers, in which the first of them is number 0.
  [[nodiscard]] PassActions begin_part(Id first, Id end, const StateTierSettings&, const InputSizes&);
  // Returns the bytes of memory for states on their way to and from the disk in that pass. Empty: as usual.
  [[nodiscard]] std::optional<Bytes> transit() const { return transit_; }
  // Returns the actions of a pass by the schedule of the one that goes on, through the layers from `first` on, which
  // turned out to have these sizes. Keeps the sizes for later passes unless there are new settings.
  [[nodiscard]] PassActions begin_again(Id first, ChainForm sizes, const StateTierSettings&, const InputSizes&);
  // Returns the actions of a backward from these states, which are all in this tier or held as they are.
  [[nodiscard]] PassActions begin_backward(std::span<const Id> remembered, std::optional<StateTier>,
                                           const StateTierSettings&) const;

 private:
  [[nodiscard]] SchedulePointer used_schedule(const StateTierSettings&);
  [[nodiscard]] PassPart part(Id first, Id end, const StateTierSettings&) const;
  // Returns the actions of a pass through a part that needs no plan. Empty if the schedule has to make one.
  [[nodiscard]] std::optional<PassActions> begin_without_plan(const SchedulePointer&, const PassPart&);
  [[nodiscard]] ChainForm& own_form();
  void match_tiers(ChainForm&, const StateTierSettings&) const;
  void reserve_transit(ChainForm&, Bytes limit, const StateTierSettings&, const InputSizes&);
  void clear_plan();
  [[nodiscard]] std::shared_ptr<const ChainPlan> disabled_plan();
  [[nodiscard]] std::shared_ptr<const ChainPlan> plan(const StateTierSettings&, const InputSizes&);

  ChainLayers layers_;
  const bool tapes_;
  mutable std::optional<ChainForm> form_;  // made when it is first asked for
  SchedulePointer schedule_;
  bool is_enabled_ = true;
  bool has_sizes_ = false;
  bool are_gradients_assumed_ = false;  // to be as large as states
  PassPlanner planner_;
  std::shared_ptr<const ChainPlan> plan_, disabled_plan_;  // on and off; null: to be made
  Bytes plan_entry_ = 0;  // bytes of a state on disk that it was made for, if sizes are not known
  std::optional<Bytes> transit_;
  SchedulePointer used_schedule_;                 // of the pass that goes on, or of the last one
  std::uint64_t changes_ = 0, used_changes_ = 0;  // of the settings so far, and when that pass began
};

}  // namespace reprise::internal
