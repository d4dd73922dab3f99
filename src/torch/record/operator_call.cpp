#include "torch/record/operator_call.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "torch/evict/saved_values.h"
#include "torch/libtorch/clock.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/record/arguments.h"
#include "torch/record/follower.h"
#include "torch/values/recordings.h"

namespace reprise::internal {
namespace {

double microseconds(bool of_cpu) {
  return of_cpu ? thread_microseconds() : wall_microseconds();
}

bool has_failed(const OperatorInfo& info, const at::RecordFunction& call) {
  return call.outputs().empty() && !info.handle.schema().returns().empty();
}

const at::Tensor& tensor_at(c10::ArrayRef<const c10::IValue> inputs, const Write& write) {
  const c10::IValue& input = inputs[write.argument];
  return input.isTensor() ? input.toTensor() : input.toListRef()[write.element].toTensor();
}

}  // namespace

// ---- before it runs ------------------------------------------------------------------------------------------------

OperatorCall::OperatorCall(const Arbiter& lock, std::shared_ptr<Recording> recording, const OperatorInfo& info,
                           c10::ArrayRef<const c10::IValue> inputs)
    : recording_(std::move(recording)), r_(*recording_), op_(r_.cursor().next()) {
  if (!r_.cursor().following() || !follow(lock, r_, info, inputs)) record(info, inputs);
  if (info.writes || info.batch_norm) begin_writing(inputs);
  r_.begin_operator(op_);
  r_.call(this);
}

OperatorCall::~OperatorCall() {
  if (r_.call() == this) r_.call(nullptr);
}

void OperatorCall::record(const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
  Recipe recipe;
  recipe.info = &info;
  recipe.start = r_.cursor().recipes().marks();
  recipe.why_not_replayable = info.why_not_replayable;
  recipe.grad_mode = at::GradMode::is_enabled();
  recipe.default_type = libtorch::default_type();
  recipe.settings = Settings::now();
  write_arguments(r_, recipe, inputs);
  const bool on_accelerator = r_.cursor().recipes().accelerator_of(recipe.start.references).has_value();
  if (!recipe.why_not_replayable) recipe.why_not_replayable = r_.context().why_inexact(info, op_, on_accelerator);
  recipe.module = r_.context().module_of(inputs);
  recipe.structural_hash = r_.cursor().recipes().structural_hash_of(info, recipe.start.references);
  r_.cursor().add_operator(recipe);
  r_.journal().resize_costs(static_cast<std::size_t>(op_) + 1);
}

// What was there was copied where recipes need it, see writes.h.
void OperatorCall::begin_writing(c10::ArrayRef<const c10::IValue> inputs) {
  const auto writes = r_.cursor().recipes().writes_of(op_);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    c10::StorageImpl* const storage = libtorch::storage_of(tensor_at(inputs, writes[i]));
    const bool again = std::any_of(writings_.begin(), writings_.end(), [&](const Writing& other) {
      return other.storage.unsafeGetStorageImpl() == storage;  // several arguments may be views of one storage
    });
    if (again) continue;
    writings_.push_back(
        {libtorch::share(storage), r_.values().bindings().find(storage), static_cast<std::int16_t>(i), false});
  }
}

void OperatorCall::start_clock(bool of_cpu) {
  cpu_clock_ = of_cpu;
  start_ = microseconds(of_cpu);
  LateCosts* const late = r_.journal().late();
  timed_on_device_ = late && late->begin(r_.journal().moment() - 1, r_.cursor().recipes(), op_);
}

// ---- while it runs -------------------------------------------------------------------------------------------------

void OperatorCall::add_waiting(SavedTensor& saved, c10::StorageImpl* storage) {
  saved.waiting = libtorch::share(storage);
  waiting_.push_back(&saved);
}

void OperatorCall::remove_waiting(SavedTensor& saved) {
  waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), &saved), waiting_.end());
}

// ---- after it has run ----------------------------------------------------------------------------------------------

void OperatorCall::end(const at::RecordFunction& call) {
  const bool failed = has_failed(*recipe().info, call);
  if (timed_on_device_) r_.journal().late()->end();
  std::optional<Arbiter> lock(std::in_place);
  note_cost();
  if (failed) {
    fail();
  } else {
    take_results(call);
    if (r_.context().has_policy()) {
      lock.reset();
      ask_policy(call);
      lock.emplace();
    }
  }
  for (Writing& writing : writings_) Arbiter::discard(std::move(writing.storage));
  writings_.clear();
  r_.cursor().advance();
  bind_waiting(failed);
  r_.call(nullptr);
  r_.journal().end_operator();
  r_.values().read_held();  // what was evicted while a graph was captured
}

void OperatorCall::note_cost() {
  Journal& journal = r_.journal();
  if (journal.measuring() && !(timed_on_device_ && r_.cursor().following())) {
    journal.set_cost(op_, static_cast<float>(microseconds(cpu_clock_) - start_), r_.cursor().following());
  }
  journal.advance(journal.cost_of(op_));
  journal.end_moment();
}

void OperatorCall::take_results(const at::RecordFunction& call) {
  if (const char* const why = cannot_be_drawn_again()) refuse_replays("random numbers that no tape has", why);
  if (why_not_replayable_) refuse_replays("what cannot be replayed", why_not_replayable_);
  if (!drawn_.tape().empty()) r_.cursor().tape(op_, drawn_.take_tape());
  const auto& results = call.outputs();
  for (std::size_t i = 0; i < results.size(); ++i) take_result(results[i], static_cast<std::int16_t>(i));
  // Written arguments that are no results (noise, statistics, lists): the next version as well.
  for (Writing& writing : writings_) {
    if (!writing.done) take_writing(writing, nullptr);
  }
  if (r_.cursor().following() && outputs_seen_ != r_.cursor().recipes().outputs_of(op_).size()) {
    diverge_in_it("fewer results");
  }
}

void OperatorCall::take_result(const c10::IValue& result, std::int16_t index) {
  if (result.isTensor()) {
    take_tensor(result.toTensor(), index, 0);
  } else if (result.isTensorList()) {
    std::int16_t element = 0;
    for (const c10::IValue& one : result.toListRef()) take_tensor(one.toTensor(), index, element++);
  }
}

void OperatorCall::take_tensor(const at::Tensor& tensor, std::int16_t result, std::int16_t element) {
  if (!tensor.defined() || !libtorch::is_plain(tensor)) return;
  c10::StorageImpl* const storage = libtorch::storage_of(tensor);
  if (!storage->data()) return;
  for (Writing& writing : writings_) {
    if (writing.storage.unsafeGetStorageImpl() != storage) continue;
    if (!writing.done) take_writing(writing, &tensor);
    return;
  }
  Bindings& bindings = r_.values().bindings();
  if (bindings.find(storage) != no_value) return;  // a view of something known
  const Id made = take(storage, {no_value, result, element, -1});
  // Whoever calls from below autograd (torch::rand) makes a variable of it, and copies it if we have its version.
  const bool below_autograd = c10::impl::tls_local_dispatch_key_set().excluded_.has_any(c10::autograd_dispatch_keyset);
  if (!below_autograd) bindings.expect_present(made, tensor);
}

void OperatorCall::take_writing(Writing& writing, const at::Tensor* result) {
  c10::StorageImpl* const storage = writing.storage.unsafeGetStorageImpl();
  const Id after = take(storage, {no_value, -1, 0, writing.index});
  writing.done = true;
  if (result) r_.values().bindings().expect_present(after, *result);
  if (writing.before != no_value && writing.before != after) follow_writes(r_, writing.before, after);
  // Saved tensors of other recordings that saw no write go on with the contents as well.
  for (Recording* const other : Recordings::of_process().all()) {
    if (other != &r_) after_write(*other, storage, result ? libtorch::version_of(*result) : libtorch::Version());
  }
}

// A value that the operator has made.
Id OperatorCall::take(c10::StorageImpl* storage, Output output) {
  Values& values = r_.values();
  const meter::Header* const header = meter::header_of(*storage);
  const Bytes bytes = header ? header->bytes : static_cast<Bytes>(storage->nbytes());
  if (r_.cursor().following() && !takes_expected(storage, bytes, output)) diverge_in_it("results of other sizes");
  if (!r_.cursor().following()) add_output(storage, output);
  ++outputs_seen_;
  if (r_.cursor().info(output.value).maker != no_operator) r_.journal().made(output.value);
  if (!values.recomputable(output.value)) {
    if (values.may_evict()) values.hold(output.value, storage);
    if (r_.context().device_of(header) == untracked || recipe().why_not_replayable) {
      r_.context().counters().kept(recipe(), keeps_more(output) ? bytes : 0);
    }
  }
  const PlanCursor* const plan = r_.plan();
  if (plan && plan->owns(output.value) && r_.cursor().choice_of(output.value) != Choice::evict) {
    values.save_now(output.value);
    if (!values.kept(output.value)) values.keep(output.value, libtorch::share(storage));
  }
  return output.value;
}

bool OperatorCall::keeps_more(const Output& output) const {
  if (output.write < 0) return true;
  const Id before = r_.cursor().recipes().writes_of(op_)[output.write].before;
  return before == no_value || r_.values().recomputable(before);
}

bool OperatorCall::takes_expected(c10::StorageImpl* storage, Bytes bytes, Output& output) {
  const auto expected = r_.cursor().recipes().outputs_of(op_);
  if (outputs_seen_ >= expected.size()) return false;
  const Output& next = expected[outputs_seen_];
  if (next.result != output.result || next.element != output.element || next.write != output.write ||
      r_.values().bytes(next.value) != bytes) {
    return false;
  }
  output.value = next.value;
  r_.values().bind(storage, output.value);
  return true;
}

void OperatorCall::add_output(c10::StorageImpl* storage, Output& output) {
  const bool recomputed =
      !recipe().why_not_replayable && r_.context().device_of(meter::header_of(*storage)) != untracked &&
      (output.write < 0 || r_.cursor().recipes().writes_of(op_)[output.write].access != Access::statistic);
  output.value = r_.values().add(storage, recomputed ? op_ : no_operator);
  const auto& uninitialized = recipe().info->uninitialized_results;
  if (output.write < 0 && std::find(uninitialized.begin(), uninitialized.end(), output.result) != uninitialized.end()) {
    r_.cursor().mark_partly_uninitialized(output.value);
  }
  r_.cursor().own().outputs.push_back(output);
}

// Contents of what was being written are unknown: no value has them any more.
void OperatorCall::fail() {
  refuse_replays("an error", "it failed");
  for (Writing& writing : writings_) {
    if (writing.before != no_value) r_.values().unbind(writing.storage.unsafeGetStorageImpl(), writing.before);
  }
}

// It ran, but cannot be replayed.
void OperatorCall::refuse_replays(const char* gave, const char* why) {
  if (recipe().why_not_replayable) return;
  if (r_.cursor().following()) diverge_in_it(gave);
  r_.cursor().own().operators[op_].why_not_replayable = why;
}

void OperatorCall::diverge_in_it(const char* what) {
  diverge(r_, "operator " + std::to_string(op_) + ", " + recipe().info->name + ", gave " + what, outputs_seen_);
  for (Writing& writing : writings_) {  // values may have other numbers now
    if (!writing.done) writing.before = r_.values().bindings().find(writing.storage.unsafeGetStorageImpl());
  }
}

// Returns why what it drew is not on its tape. A kernel of the user's that is said to draw, and did not do so through
// LibTorch's operators, asked a generator itself.
const char* OperatorCall::cannot_be_drawn_again() const {
  const OperatorInfo& info = *recipe().info;
  if (drawn_.incomplete()) return "it draws from a generator that is not LibTorch's own";
  if (info.random && drawn_.tape().empty() && !info.name.starts_with("aten::")) return "it draws in a way of its own";
  return nullptr;
}

// Asks the policy about the operator that has just run. Without the lock: it is the user's.
void OperatorCall::ask_policy(const at::RecordFunction& call) {
  if (r_.cursor().following()) return;
  PolicyOperator op;
  {
    const Arbiter lock;
    op.name = recipe().info->name;
    op.random = recipe().info->random;
    if (recipe().module) op.module = *recipe().module;
    if (r_.journal().measuring()) op.seconds = static_cast<double>(r_.journal().cost_of(op_)) * 1e-6;
    for (const Output& output : r_.cursor().recipes().outputs_of(op_)) op.bytes += r_.values().bytes(output.value);
  }
  for (const c10::IValue& result : call.outputs()) {
    if (result.isTensor() && result.toTensor().defined()) op.shapes.push_back(result.toTensor().sizes().vec());
  }
  const Choice choice = r_.context().choose(op);
  const Arbiter lock;
  r_.cursor().own().operators[op_].choice = choice;
}

// Gives what was saved in it to what it was given or has made. If it failed, that will not be asked for.
void OperatorCall::bind_waiting(bool failed) {
  for (SavedTensor* const saved : waiting_) {
    if (!failed) {
      c10::StorageImpl* const memory = saved->waiting.unsafeGetStorageImpl();
      attach(r_, *saved, look_up(r_, memory, saved->version, saved->expected_version), memory);
    }
    Arbiter::discard(std::move(saved->waiting));
  }
  waiting_.clear();
}

}  // namespace reprise::internal
