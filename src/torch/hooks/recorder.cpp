#include "torch/hooks/recorder.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "torch/evict/offloaded_gradients.h"
#include "torch/evict/writes.h"
#include "torch/libtorch/clock.h"
#include "torch/libtorch/pooled.h"
#include "torch/memory/arbiter.h"
#include "torch/recipes/library_scopes.h"
#include "torch/record/follower.h"
#include "torch/record/operator_call.h"
#include "torch/record/plan_executor.h"
#include "torch/session/device_inference.h"
#include "torch/session/thread_state.h"

namespace reprise::internal {
namespace {

// ---- operators -----------------------------------------------------------------------------------------------------

// What the start callback returns for the end callback: it lives as long as the operator runs.
struct OperatorContext final : at::ObserverContext, Pooled<OperatorContext, 4> {
  std::optional<OperatorCall> call;  // of one that is recorded
  writes::Written written;           // by one that is not
  bool compiled_function = false, traced = false;
  Id only_view_of = no_value;  // of one that leaves the contents what they are: whose they are
};

// Returns true if it takes long enough to be worth a system call for the CPU time.
bool takes_long(c10::ArrayRef<const c10::IValue> inputs) {
  constexpr std::size_t much = 64 << 10;
  return std::any_of(inputs.begin(), inputs.end(), [](const c10::IValue& input) {
    return input.isTensor() && input.toTensor().defined() && libtorch::is_plain(input.toTensor()) &&
           libtorch::storage_of(input.toTensor())->nbytes() >= much;
  });
}

// Returns whether the call is a part of one that is recorded already, or will be in other words.
bool is_recorded_otherwise(const OperatorInfo& info) {
  if (info.kind == OperatorInfo::Kind::transparent || info.kind == OperatorInfo::Kind::ignored) return true;
  // The cast and the call below it are recorded instead.
  return !(info.autocast - c10::impl::tls_local_dispatch_key_set().excluded_).empty();
}

// Returns whether vmap, grad and the like take the call apart: what they make of it is recorded instead.
bool is_taken_apart() {
  return c10::impl::tls_local_dispatch_key_set().included_.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

// The function that autograd knows compiled code by (compiled.h), in forward or, to be differentiated again, in
// backward.
bool is_compiled_function(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  return name == "CompiledFunction" || name == "CompiledFunctionBackward";
}

// Returns whether a graph that calls it can be run again: operators of others may communicate, or run functions of the
// user's.
bool may_run_twice(const OperatorInfo& info) {
  constexpr std::array own = {
      "aten::", "prims::", "prim::", "inductor::", "mkldnn::", "mkl::", "onednn::", "quantized::"};
  return std::any_of(own.begin(), own.end(), [&](const char* library) { return info.name.starts_with(library); });
}

void look_at(const at::RecordFunction& function, ThreadState& here) {
  if (!here.in_compiled_graph || !here.recording || !here.recording->call()) return;
  const OperatorInfo* const info = find_operator(function);
  if (info && !may_run_twice(*info))
    here.recording->call()->mark_not_replayable("it calls operators that are not torch's own");
}

// A thread that was met in the middle of an operator: what runs below autograd is a part of that one.
bool is_still_inside(ThreadState& here) {
  if (!here.met_inside) return false;
  here.met_inside = c10::impl::tls_local_dispatch_key_set().excluded_.has_any(c10::autograd_dispatch_keyset);
  return here.met_inside;
}

// An operator of backward, which is to be differentiated again, is a moment of its own: the node that it belongs to has
// asked for what it needs, and that was its moment.
void end_node_around(Recording& r) {
  if (!r.journal().in_event()) return;
  {
    const Arbiter lock;
    r.journal().end_event(0);
  }
  if (LateCosts* const late = r.journal().late()) late->drop();
  execute_after(r, r.journal().moment() - 1);
}

// Returns the value in this tensor, if its version counter says that it is still there.
Id present_value(const Recording& r, const c10::IValue& given) {
  if (!given.isTensor() || !given.toTensor().defined() || !libtorch::is_plain(given.toTensor())) return no_value;
  const Bindings& bindings = r.values().bindings();
  const Id value = bindings.find(libtorch::storage_of(given.toTensor()));
  return value == no_value || bindings.written_unseen(value) ? no_value : value;
}

// An operator in place on what a tensor says about its storage (as_strided_, squeeze_) counts as a write in its
// version, and is none.
std::unique_ptr<at::ObserverContext> before_change_of_view(const at::RecordFunction& function,
                                                           const ThreadState& here) {
  if (!here.recording || function.inputs().empty()) return nullptr;
  const Arbiter lock;
  const Id value = present_value(*here.recording, function.inputs()[0]);
  if (value == no_value) return nullptr;
  auto context = std::make_unique<OperatorContext>();
  context->only_view_of = value;
  return context;
}

// The storage still has the memory of the value if it is bound to it. Else (set_) the tensor has another storage now:
// its version no longer says anything about the value.
void after_change_of_view(const at::RecordFunction& function, Recording& r, Id value) {
  if (function.outputs().empty() || !function.outputs()[0].isTensor()) return;
  const at::Tensor& tensor = function.outputs()[0].toTensor();
  if (!tensor.defined() || !libtorch::is_plain(tensor)) return;
  const Arbiter lock;
  Bindings& bindings = r.values().bindings();
  if (bindings.find(libtorch::storage_of(tensor)) != value) return bindings.expect_nothing(value);
  if (bindings.written_unseen(value)) bindings.expect_present(value, tensor);
}

// What is done about a call.
enum class Treatment {
  skip,        // nothing: it is recorded in other words, or there is nothing to record it in
  view_only,   // it changes what a tensor says about its storage, and leaves the contents
  opaque,      // neither it nor what it calls is recorded, but what it writes is seen
  write_only,  // the same, because nothing has begun yet that it could be needed for
  record,
};

// Begins a pass if the one before is over, so only for a call that can be recorded.
Treatment classify_in_pass(ThreadState& here) {
  if (here.infers_device != InfersDevice::no && has_no_device(here)) {
    here.infers_device = InfersDevice::in_the_middle;
    return Treatment::skip;
  }
  begin_pass_if_over();
  if (!here.recording) return Treatment::skip;  // a step that is not recorded has begun
  const Recording& r = *here.recording;
  const bool starts_nothing =
      r.values().pending().count() == 0 && !at::GradMode::is_enabled() && !here.in_compiled_function;
  return starts_nothing || library_scopes() > 0 || r.context().is_capturing() ? Treatment::write_only
                                                                              : Treatment::record;
}

Treatment classify(const at::RecordFunction& function, const OperatorInfo* info, ThreadState& here) {
  using Kind = OperatorInfo::Kind;
  if (libtorch::is_traced()) return Treatment::opaque;
  if (here.infers_device != InfersDevice::no) find_device(here, function.inputs());
  if (!info) return is_compiled_function(function) ? Treatment::opaque : Treatment::skip;
  if (is_recorded_otherwise(*info) || is_taken_apart()) {
    return info->kind == Kind::ignored && info->writes ? Treatment::view_only : Treatment::skip;
  }
  return info->kind == Kind::opaque ? Treatment::opaque : classify_in_pass(here);
}

writes::Written save_what_it_writes(const at::RecordFunction& function, const OperatorInfo& info) {
  writes::Written written = writes::written_by(info, function.inputs());
  writes::save_contents(written);
  return written;
}

// Last in a start callback: LibTorch does not announce the end of an operator whose start callback threw.
std::unique_ptr<OperatorContext> enter(std::unique_ptr<OperatorContext> context) {
  ++writes::operators_under_way();
  return context;
}

std::unique_ptr<OperatorContext> enter_opaque(const at::RecordFunction& function, const OperatorInfo* info,
                                              ThreadState& here) {
  auto context = std::make_unique<OperatorContext>();
  if (info) context->written = save_what_it_writes(function, *info);
  if (libtorch::is_traced()) {
    context->traced = here.in_traced = true;
  } else {
    context->compiled_function = here.in_compiled_function = !info;
  }
  return enter(std::move(context));
}

std::unique_ptr<OperatorContext> enter_write(const at::RecordFunction& function, const OperatorInfo& info) {
  if (!info.writes && !info.batch_norm) return nullptr;
  writes::Written written = save_what_it_writes(function, info);
  if (written.empty()) return nullptr;
  auto context = std::make_unique<OperatorContext>();
  context->written = std::move(written);
  return enter(std::move(context));
}

std::unique_ptr<OperatorContext> enter_recorded(const at::RecordFunction& function, const OperatorInfo& info,
                                                ThreadState& here) {
  Recording& r = *here.recording;
  if (info.writes || info.batch_norm) (void)save_what_it_writes(function, info);
  end_node_around(r);
  execute_before(r, r.journal().moment());
  auto context = std::make_unique<OperatorContext>();
  try {
    const Arbiter lock;
    context->call.emplace(lock, here.recording, info, function.inputs());
  } catch (...) {  // out of memory: what is saved stays what it is, and a new pass begins
    here.recording.reset();
    throw;
  }
  if (r.journal().measuring()) context->call->start_clock(takes_long(function.inputs()));
  return enter(std::move(context));
}

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& function) {
  ThreadState& here = this_thread();
  if (writes::operators_under_way() > 0) {
    look_at(function, here);
    return nullptr;
  }
  if (!here.source || is_still_inside(here)) return nullptr;
  const OperatorInfo* const info = find_operator(function);
  switch (classify(function, info, here)) {
    case Treatment::skip: return nullptr;
    case Treatment::view_only: return before_change_of_view(function, here);
    case Treatment::opaque: return enter_opaque(function, info, here);
    case Treatment::write_only: return enter_write(function, *info);
    case Treatment::record: return enter_recorded(function, *info, here);
  }
  return nullptr;
}

void on_operator_end(const at::RecordFunction& function, at::ObserverContext* given) {
  if (!given) return;
  ThreadState& here = this_thread();
  auto& context = *static_cast<OperatorContext*>(given);
  if (context.only_view_of != no_value) {
    if (here.recording) after_change_of_view(function, *here.recording, context.only_view_of);
    return;
  }
  --writes::operators_under_way();
  if (context.compiled_function) here.in_compiled_function = false;
  if (context.traced) here.in_traced = false;
  if (!context.call) return writes::take_over(context.written);
  if (!here.recording) return;
  Recording& r = *here.recording;
  context.call->end(function);
  execute_after(r, r.journal().moment() - 1);
}

// ---- what a library does for itself ---------------------------------------------------------------------------------

struct LibraryScopeContext final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> on_scope(const at::RecordFunction& scope) {
  if (!is_library_scope(scope.name())) return nullptr;
  ++library_scopes();
  return std::make_unique<LibraryScopeContext>();
}

void on_scope_end(const at::RecordFunction&, at::ObserverContext* given) {
  if (given && library_scopes() > 0) --library_scopes();  // unless the step has been closed in it
}

// ---- nodes of backward ---------------------------------------------------------------------------------------------

struct NodeContext final : at::ObserverContext, Pooled<NodeContext, 4> {
  double start = 0;  // if it is timed
};

std::unique_ptr<at::ObserverContext> on_node(const at::RecordFunction& node) {
  ThreadState& here = this_thread();
  if (!here.recording || !here.recording->in_backward()) return nullptr;
  Recording& r = *here.recording;
  if (r.context().is_capturing()) return nullptr;
  const std::uint64_t name = std::hash<std::string_view>()(node.name());
  if (r.plan() && !r.plan()->expects(r.journal().moment(), name)) {
    diverge(r, "backward ran " + std::string(node.name()) + " at another moment than before");
  }
  {
    const Arbiter lock;
    r.values().release_outlasting();
  }
  execute_before(r, r.journal().moment());
  {
    const Arbiter lock;
    r.begin_event(node.name(), name);
  }
  if (auto* const gradients = OffloadedGradients::of_this_thread()) gradients->begin_node();
  auto context = std::make_unique<NodeContext>();
  if (r.journal().observing()) context->start = wall_microseconds();
  if (LateCosts* const late = r.journal().late()) late->begin(r.journal().moment() - 1);
  return context;
}

void on_node_end(const at::RecordFunction&, at::ObserverContext* given) {
  ThreadState& here = this_thread();
  if (!given) return;
  if (auto* const gradients = OffloadedGradients::of_this_thread()) gradients->end_node();
  if (!here.recording) return;
  Recording& r = *here.recording;
  if (LateCosts* const late = r.journal().late()) late->end();
  {
    const Arbiter lock;
    Journal& journal = r.journal();
    if (!journal.in_event()) return;
    const double start = static_cast<NodeContext*>(given)->start;
    const double cost = journal.observing() ? wall_microseconds() - start - journal.recomputing() : 0;
    journal.end_event(std::max(0.0f, static_cast<float>(cost)));
  }
  execute_after(r, r.journal().moment() - 1);
}

// ---- blocks of TorchScript ------------------------------------------------------------------------------------------

// That it differentiates as a whole: its interpreter holds what the block saves until it ends, and backward takes all
// of it at once.
struct ScriptContext final : at::ObserverContext {
  std::weak_ptr<Recording> recording;  // that there was when it began
  Id first = 0;                        // its next operator
};

std::unique_ptr<at::ObserverContext> on_executable(const at::RecordFunction& block) {
  const ThreadState& here = this_thread();
  if (!here.source || std::string_view(block.name()) != "<forward op>") return nullptr;
  auto context = std::make_unique<ScriptContext>();
  if (here.recording) {
    context->recording = here.recording;
    context->first = here.recording->cursor().next();
  }
  return context;
}

void on_executable_end(const at::RecordFunction&, at::ObserverContext* given) {
  const auto* const context = static_cast<ScriptContext*>(given);
  const auto& r = this_thread().recording;
  if (!context || !r) return;
  const Id first = context->recording.lock() == r ? context->first : 0;
  const Arbiter lock;
  const Values& values = r->values();
  Bytes bytes = 0;
  for (Id v = 0; v < static_cast<Id>(values.size()); ++v) {
    if (r->cursor().info(v).maker >= first && values.device(v) == 0 && values.resident(v)) {
      bytes += values.bytes(v);
    }
  }
  r->context().counters().held("TorchScript", "a scripted block holds all that it saves until it ends", bytes);
}

// ---- callbacks -----------------------------------------------------------------------------------------------------

void watch(std::optional<at::CallbackHandle>& handle, Watch watch, const at::RecordFunctionCallback& callback) {
  if ((watch == Watch::on) == handle.has_value()) return;
  if (watch == Watch::on) {
    handle = at::addThreadLocalCallback(callback);
  } else {
    at::removeCallback(*handle);
    handle.reset();
  }
}

}  // namespace

void watch_operators(Watch on) {
  watch(this_thread().operators, on,
        at::RecordFunctionCallback(on_operator, on_operator_end)
            .needsInputs(true)
            .needsOutputs(true)
            .scopes({at::RecordScope::FUNCTION}));
  watch(this_thread().scopes, on,
        at::RecordFunctionCallback(on_scope, on_scope_end).scopes({at::RecordScope::USER_SCOPE}));
  watch(this_thread().executables, on,
        at::RecordFunctionCallback(on_executable, on_executable_end).scopes({at::RecordScope::TORCHSCRIPT_FUNCTION}));
  if (on == Watch::on) draws::prepare();
}

void watch_nodes(Watch on) {
  watch(this_thread().nodes, on,
        at::RecordFunctionCallback(on_node, on_node_end).scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

}  // namespace reprise::internal
