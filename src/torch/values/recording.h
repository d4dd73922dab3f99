// A recording: the live side of a pass. It joins its cursor (which recipes, and how far), its values (which storage
// holds which, what is kept, packed or evicted), its journal (moments, costs, other bytes) and the plan that it
// follows, if any.
//
// Everything here happens under the arbiter's lock, unless it says otherwise.
#pragma once

#include <memory>
#include <optional>

#include "torch/recipes/recipe_cursor.h"
#include "torch/values/journal.h"
#include "torch/values/plan_cursor.h"
#include "torch/values/recording_context.h"
#include "torch/values/values.h"

namespace reprise::internal {

class OperatorCall;

class Recording : public std::enable_shared_from_this<Recording> {
 public:
  // Follows these recipes for as long as the operators match; nullptr: writes its own from the start. Nothing is
  // measured.
  Recording(std::shared_ptr<RecordingContext>, std::shared_ptr<Recipes> followed);
  // Follows this pass, and its plan if it has one; nullptr: observes one that was never seen. `expected`: it is the
  // one that steps begin with, not a mere guess.
  Recording(std::shared_ptr<RecordingContext>, std::shared_ptr<RecordedPass> followed, bool expected);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  [[nodiscard]] RecordingContext& context() const { return *context_; }
  [[nodiscard]] std::shared_ptr<RecordingContext> shared_context() const { return context_; }
  [[nodiscard]] RecipeCursor& cursor() { return cursor_; }
  [[nodiscard]] const RecipeCursor& cursor() const { return cursor_; }
  [[nodiscard]] Journal& journal() { return journal_; }
  [[nodiscard]] const Journal& journal() const { return journal_; }
  [[nodiscard]] Values& values() { return values_; }
  [[nodiscard]] const Values& values() const { return values_; }

  // ---- the pass, see follower.h ----
  // Returns the pass that is followed, or was made of this recording. Null until then.
  [[nodiscard]] const std::shared_ptr<RecordedPass>& pass() const { return pass_; }
  [[nodiscard]] bool expected() const { return expected_; }
  void remembered_as(std::shared_ptr<RecordedPass>);
  // Follows another pass, which began in the same way.
  void change_to(const std::shared_ptr<RecordedPass>&);
  // Stops following the pass, and returns it.
  [[nodiscard]] std::shared_ptr<RecordedPass> leave_pass();
  // Null if the online policy decides.
  [[nodiscard]] PlanCursor* plan() { return plan_ ? &*plan_ : nullptr; }
  // Follows a plan that was made in a rehearsal, before the pass was seen.
  void follow_plan(std::shared_ptr<const ExecutablePlan> executable) {
    plan_ = PlanCursor::of(std::move(executable), *context_);
  }
  void drop_plan() {
    plan_.reset();
    unmonitored_ = false;
  }
  // Returns true if the plan of the pass evicts nothing, and its steps are not executed; plan() is null then.
  [[nodiscard]] bool is_unmonitored() const { return unmonitored_; }
  // Returns how a value packs, if that is known.
  [[nodiscard]] std::optional<PackedForm> form_of(Id value) const;
  // Notes that a replay does not give what the operator gave: its results are kept from now on, and the pass is planned
  // again.
  void mark_inexact(Id op);

  // ---- values from outside ----
  Id add_from_outside(c10::StorageImpl*, const libtorch::Version&, std::uint32_t expected_version);
  // Binds a value of the recipes that are followed, when the pass meets it for the first time.
  void adopt_from_outside(Id value, const at::Tensor&);

  // Returns whether a saved tensor needs the value, and no plan has dropped it.
  [[nodiscard]] bool awaits(Id value) const;
  // Notes that the program has freed the memory of this value's storage, and still has the storage: see freed.h.
  void mark_emptied(Id value, const FreedMemory&);

  // ---- moments, see journal.h ----
  void begin_operator(Id op);
  void begin_event(const char* name, std::uint64_t hash);
  // Returns the operator that runs. Null if none does.
  [[nodiscard]] OperatorCall* call() const { return call_; }
  void call(OperatorCall* call) { call_ = call; }

  // ---- backward ----
  [[nodiscard]] bool in_backward() const { return in_backward_; }
  [[nodiscard]] bool went_back() const { return went_back_; }  // a backward has ended
  void begin_backward() { in_backward_ = true; }
  // See Pending::end_backward.
  [[nodiscard]] bool end_backward();

  // Returns the CPU seconds that its session has spent on recomputing and packing values since it began.
  [[nodiscard]] double recomputing() const { return context_->counters().recomputing() - recomputing_before_; }

  // Its thread records elsewhere from now on: only what pending saved tensors need stays, and its recipes do not
  // change.
  void end();

 private:
  void take_plan();
  void adopt_from_outside(Id value, c10::StorageImpl*);

  const std::shared_ptr<RecordingContext> context_;
  RecipeCursor cursor_;
  Journal journal_;
  Values values_;
  std::shared_ptr<RecordedPass> pass_;
  bool expected_ = false;
  std::optional<PlanCursor> plan_;
  bool unmonitored_ = false;
  OperatorCall* call_ = nullptr;
  const double recomputing_before_;
  bool in_backward_ = false, went_back_ = false;
};

}  // namespace reprise::internal
