// The settings of a chain, and the passes that follow from them.
#pragma once

#include <memory>
#include <span>

#include "chain/chain_script_maker.h"
#include "chain/pass.h"
#include "chain/state_tiers.h"
#include "reprise/chain/any_chain.h"

namespace reprise::internal {

// What a pass begins with.
struct ChainInput {
  Bytes bytes = 0;
  Bytes coded = 0;  // with the codec; without one the same
  Bytes room = 0;   // that coding it takes
};

class ChainSetup {
 public:
  ChainSetup(ChainLayers, bool tapes);

  void schedule(SchedulePointer);
  [[nodiscard]] const SchedulePointer& schedule() const { return schedule_; }
  void enabled(bool on) { enabled_ = on, ++changes_; }
  [[nodiscard]] bool enabled() const { return enabled_; }
  // Sets sizes and costs. Throws BadOption for another number of layers, and for numbers that make no sense.
  void sizes(ChainForm, const StateTierSettings&);
  // The same, as they were measured, with those of every state in the tiers there are. A gradient is taken to be as
  // large as its state.
  void measured(ChainForm, std::span<const StateTierTerms> packed, std::span<const StateTierTerms> disk,
                const StateTierSettings&);
  // The same, with the tiers that are there.
  void measured_again(ChainForm);
  // Says that the tiers are others now.
  void places_changed();

  [[nodiscard]] ChainScriptMaker& planner() { return planner_; }
  [[nodiscard]] const ChainLayers& layers() const { return layers_; }
  [[nodiscard]] bool tapes() const { return tapes_; }
  // Returns the form of all layers; of none if their number is unknown.
  [[nodiscard]] const ChainForm& form() const;
  [[nodiscard]] double forward_cost(Id layer) const;
  [[nodiscard]] bool sizes_known() const { return sizes_known_; }
  // True if the next pass is planned for the sizes of the form.
  [[nodiscard]] bool needs_sizes() const { return enabled_ && schedule_->needs_sizes(); }
  // Of the bytes that the next pass may hold.
  [[nodiscard]] Bytes limit() const { return schedule_->limit().value_or(largest_bytes); }
  [[nodiscard]] bool gradients_assumed() const { return gradients_assumed_; }

  // Returns a new pass. Its script is made if anything has changed since the last one. Throws ChainError if something
  // is missing that the schedule needs, BadOption if it has no plan.
  [[nodiscard]] ChainPass begin(const StateTierSettings&, const ChainInput&);
  // Returns the form of some of the layers, or of so many if their number is unknown, with these tiers.
  [[nodiscard]] ChainForm form_of_part(Id first, Id end, const StateTierSettings&) const;
  // Returns a new pass through some of the layers and nothing else, whose first one it calls 0.
  [[nodiscard]] ChainPass begin_part(Id first, Id end, const StateTierSettings&, const ChainInput&);
  // The bytes of memory for states on their way to and from the disk in that pass. Empty: as usual.
  [[nodiscard]] std::optional<Bytes> transit() const { return transit_; }
  // Returns a pass by the schedule of the one that goes on, through these layers from `first` on, which have turned out
  // to have these sizes. The sizes are remembered unless there are new settings.
  [[nodiscard]] ChainPass begin_again(Id first, ChainForm sizes, const StateTierSettings&, const ChainInput&);
  // Returns a pass that goes backward from these states and nothing else, all in this tier, or held as they are.
  [[nodiscard]] ChainPass begin_backward(std::span<const Id> remembered, std::optional<StateTier>,
                                         const StateTierSettings&) const;

 private:
  [[nodiscard]] SchedulePointer used_schedule(const StateTierSettings&);
  [[nodiscard]] PassPart part(Id first, Id end, const StateTierSettings&) const;
  // A pass through a part that needs no plan; empty if the schedule has to make one.
  [[nodiscard]] std::optional<ChainPass> begin_without_plan(const SchedulePointer&, const PassPart&);
  [[nodiscard]] ChainForm& own_form();
  void match_tiers(ChainForm&, const StateTierSettings&) const;
  void reserve_transit(ChainForm&, Bytes limit, const StateTierSettings&, const ChainInput&);
  void forget_script();
  [[nodiscard]] std::shared_ptr<const ChainScript> plain_script();
  [[nodiscard]] std::shared_ptr<const ChainScript> script(const StateTierSettings&, const ChainInput&);

  ChainLayers layers_;
  const bool tapes_;
  mutable std::optional<ChainForm> form_;  // made when somebody needs it
  SchedulePointer schedule_;
  bool enabled_ = true;
  bool sizes_known_ = false;
  bool gradients_assumed_ = false;  // to be as large as states
  ChainScriptMaker planner_;
  std::shared_ptr<const ChainScript> script_, plain_script_;  // on and off; null: to be made
  Bytes script_entry_ = 0;  // bytes of a state on disk that it was made for, if sizes are not known
  std::optional<Bytes> transit_;
  SchedulePointer used_schedule_;                 // of the pass that goes on, or of the last one
  std::uint64_t changes_ = 0, used_changes_ = 0;  // of the settings so far, and when that pass began
};

}  // namespace reprise::internal
