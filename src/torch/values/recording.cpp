#include "torch/values/recording.h"

#include <algorithm>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/values/recordings.h"

namespace reprise::internal {
// ---- a recording's life --------------------------------------------------------------------------------------------

Recording::Recording(std::shared_ptr<RecordingContext> context, std::shared_ptr<Recipes> followed)
    : context_(std::move(context)),
      cursor_(std::move(followed)),
      journal_(context_->device().meter()),
      values_(cursor_, journal_, *context_, context_->may_evict()),
      recomputing_before_(context_->counters().recomputing()) {
  const Arbiter lock;
  values_.bindings().number(Recordings::of_process().add(*this, values_.bindings()));
}

Recording::Recording(std::shared_ptr<RecordingContext> context, std::shared_ptr<RecordedPass> followed, bool expected)
    : Recording(std::move(context), followed ? followed->recipes : nullptr) {
  pass_ = std::move(followed);
  if (!pass_) {
    journal_.observe();
    if (const auto device = context_->accelerator()) journal_.measure_late(*device);
    return;
  }
  expected_ = expected;
  take_plan();
  journal_.follow(pass_->profile);
  const bool may_be_planned = !pass_->costs_settled();  // for this budget, or by who asks for the trace
  journal_.measure(pass_->wants_costs(), plan_.has_value() || may_be_planned);
  if (const auto device = context_->accelerator(); device && journal_.measuring()) journal_.measure_late(*device);
}

Recording::~Recording() {
  const Arbiter lock;
  Recordings::of_process().remove(*this);
  values_.clear();
}

void Recording::end() {
  cursor_.seal();
  values_.end();
}

bool Recording::end_backward() {
  in_backward_ = false;
  went_back_ = true;
  return values_.pending().end_backward();
}

// ---- the pass ----------------------------------------------------------------------------------------------------

void Recording::remembered_as(std::shared_ptr<RecordedPass> pass) {
  pass_ = std::move(pass);
  journal_.follow(pass_->profile);
}

void Recording::change_to(const std::shared_ptr<RecordedPass>& another) {
  pass_ = another;
  cursor_.change_to(another->recipes);
  values_.resize();
  journal_.follow(another->profile);
  take_plan();
}

// A plan that asks for nothing is followed to the letter now and then: the other bytes are measured, and if they have
// grown there is another plan.
void Recording::take_plan() {
  constexpr int measured_every = 16;
  plan_ = PlanCursor::of(*pass_, *context_);
  const bool measured = pass_->given || pass_->met % measured_every == 0;
  unmonitored_ = plan_ && !measured && plan_->is_noop(context_->budget());
  if (unmonitored_) plan_.reset();
}

std::shared_ptr<RecordedPass> Recording::leave_pass() {
  journal_.leave(cursor_.recipes().operators.size());
  return std::exchange(pass_, nullptr);
}

std::optional<PackedForm> Recording::form_of(Id value) const {
  const PackedForm* const form = context_->packs() ? journal_.profile().form_of(value) : nullptr;
  return form ? std::optional(*form) : std::nullopt;
}

void Recording::mark_inexact(Id op) {
  const OperatorInfo& info = *cursor_.recipes().operators[op].info;
  context_->mark_inexact(info, op);
  cursor_.mark_not_replayable(op, context_->why_inexact(info, op, false));
  if (pass_) pass_->drop_plan();
}

// ---- values from outside -------------------------------------------------------------------------------------------

Id Recording::add_from_outside(c10::StorageImpl* storage, const libtorch::Version& version,
                               std::uint32_t expected_version) {
  const Id value = values_.add(storage, no_operator);
  adopt_from_outside(value, storage);
  values_.bindings().expect(value, version, expected_version);
  return value;
}

void Recording::adopt_from_outside(Id value, const at::Tensor& tensor) {
  c10::StorageImpl* const storage = libtorch::storage_of(tensor);
  values_.bind(storage, value);
  adopt_from_outside(value, storage);
  values_.bindings().expect_present(value, tensor);
}

void Recording::adopt_from_outside(Id value, c10::StorageImpl* storage) {
  // On an accelerator such bytes are in the budget: its allocator says how many they are.
  if (!meter::header_of(*storage) && storage->device_type() == c10::DeviceType::CPU && context_->has(*storage)) {
    context_->counters().unmetered(static_cast<Bytes>(storage->nbytes()), storage);
  }
  if (values_.may_evict()) values_.hold(value, storage);
}

bool Recording::awaits(Id value) const {
  return values_.pending().any_of(value) && !(plan_ && plan_->dropped(value));
}

void Recording::mark_emptied(Id value, const FreedMemory& how) {
  if (values_.mark_emptied(value, how) && pass_) pass_->drop_plan();
}

// ---- moments -------------------------------------------------------------------------------------------------------

void Recording::begin_operator(Id op) {
  journal_.begin_operator(op, values_.size(), [this](Id value) { return values_.held_by_program(value); });
}

void Recording::begin_event(const char* name, std::uint64_t hash) {
  journal_.begin_event(name, hash, values_.size(), [this](Id value) { return values_.held_by_program(value); });
}

}  // namespace reprise::internal
