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
  // Follows this pass, and its plan if it has one; nullptr: observes one that nobody has seen. `expected`: it is the
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
  // Whose recipes are followed, or which remembers them; nullptr: none yet.
  [[nodiscard]] const std::shared_ptr<RecordedPass>& pass() const { return pass_; }
  [[nodiscard]] bool expected() const { return expected_; }
  void remembered_as(std::shared_ptr<RecordedPass> pass) { pass_ = std::move(pass); }
  // Follows another one that began in the same way.
  void change_to(const std::shared_ptr<RecordedPass>&);
  // Returns the one that was followed: it is not any more.
  [[nodiscard]] std::shared_ptr<RecordedPass> leave_pass();
  // nullptr: the online policy decides.
  [[nodiscard]] PlanCursor* plan() { return plan_ ? &*plan_ : nullptr; }
  // A plan that was made before anybody has seen the pass: of a rehearsal.
  void follow_plan(std::shared_ptr<const ExecutablePlan> executable) {
    plan_ = PlanCursor::of(std::move(executable), *context_);
  }
  void drop_plan() {
    plan_.reset();
    unmonitored_ = false;
  }
  // It has a plan that asks for nothing, and nobody has to look after it; `plan` has none then.
  [[nodiscard]] bool is_unmonitored() const { return unmonitored_; }
  // How a value packs, if anybody has looked.
  [[nodiscard]] std::optional<PackedForm> form_of(Id value) const;
  // A replay does not give what the operator gave: what it makes is kept from now on, and the pass planned anew.
  void mark_inexact(Id op);

  // ---- values from outside ----
  // The value that the tensor's storage holds; a storage that is unknown, or was written while nobody watched, is a new
  // value from outside.
  [[nodiscard]] Id look_up(const at::Tensor&);
  Id add_from_outside(c10::StorageImpl*, const libtorch::Version&, std::uint32_t expected_version);
  // A value of the recipes that are followed has been met for the first time.
  void adopt_from_outside(Id value, const at::Tensor&);

  // ---- saved tensors ----
  void attach(SavedTensor&, Id value, c10::StorageImpl*);
  void detach(SavedTensor&);
  // Whether any wait for it to be kept.
  [[nodiscard]] bool awaits(Id value) const;
  // Those of one value that saw no write go over to another version of its storage.
  void follow_writes(Id from, Id to);
  // The program has written into the storage, and not by an operator of this recording.
  void after_write(c10::StorageImpl*, const libtorch::Version& of_tensor);

  // The program has freed the memory of this value's storage, and has the storage still: see freed.h.
  void freed(Id value, const Values::Freed&);

  // ---- moments, see journal.h ----
  void begin_operator(Id op);
  void begin_event(const char* name, std::uint64_t hash);
  // The operator that runs; nullptr: none.
  [[nodiscard]] OperatorCall* call() const { return call_; }
  void call(OperatorCall* call) { call_ = call; }

  // ---- backward ----
  [[nodiscard]] bool in_backward() const { return in_backward_; }
  [[nodiscard]] bool went_back() const { return went_back_; }  // a backward has ended
  void begin_backward() { in_backward_ = true; }
  // See Pending::end_backward.
  [[nodiscard]] bool end_backward();

  // CPU seconds that its session has recomputed and packed values for since it began.
  [[nodiscard]] double recomputing() const { return context_->counters().recomputing() - recomputing_before_; }

  // Its thread records elsewhere from now on: only what pending saved tensors need stays, and its recipes do not
  // change.
  void end();

 private:
  void take_plan();
  void adopt_from_outside(Id value, c10::StorageImpl*);
  void observe_form(Id value, const c10::StorageImpl&, at::ScalarType);
  void pack_at_once(Id value, const c10::StorageImpl&, at::ScalarType);

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
