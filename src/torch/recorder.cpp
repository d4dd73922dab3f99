#include "torch/recorder.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <string_view>

#include "torch/executor.h"
#include "torch/meter.h"
#include "torch/saved.h"
#include "torch/session_state.h"
#include "torch/writes.h"

namespace reprise::internal {
namespace {

// ---- arguments -----------------------------------------------------------------------------------------------------

bool is_constant(const c10::IValue& input) {
  if (input.isTensor())
    return !input.toTensor().defined() || input.toTensor().unsafeGetTensorImpl()->is_wrapped_number();
  if (!input.isList() || input.isTensorList() || input.isOptionalTensorList()) {
    return !input.isTensorList() && !input.isOptionalTensorList();
  }
  const auto elements = input.toListRef();
  return elements.empty() || !elements[0].isTensor();
}

bool covers_storage(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * tensor.itemsize() == libtorch::storage_of(tensor)->nbytes() &&
         tensor.is_non_overlapping_and_dense();
}

// What the operator in hand does to an argument's storage.
Access access_of(const OperatorInfo& info, bool training, int argument, const at::Tensor& tensor) {
  if (training && argument >= info.first_statistic && argument <= info.last_statistic) return Access::statistic;
  if (!training && argument == info.noise_argument) return Access::statistic;
  const Access declared = info.access[argument];
  return declared == Access::overwrite && !covers_storage(tensor) ? Access::write : declared;
}

// ---- writing recipes -----------------------------------------------------------------------------------------------

class ArgumentWriter {
 public:
  ArgumentWriter(Recording& recording, Recipe& recipe)
      : recording_(recording), recipes_(*recording.recipes), recipe_(recipe) {}

  void write(c10::ArrayRef<const c10::IValue> inputs) {
    training_ = recipe_.info->is_training(inputs);
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) write(inputs[i], i);
    find_overwritten_inputs();
  }

 private:
  void write(const c10::IValue& input, int index) {
    Argument argument;
    if (is_constant(input)) {
      argument.first = static_cast<std::uint32_t>(recipes_.constants.size());
      recipes_.constants.push_back(input);
    } else if (input.isTensor() && !libtorch::is_plain(input.toTensor())) {
      argument.kind = Argument::Kind::unknown;
      recipe_.obstacle = "an argument is not a plain tensor on the CPU";
    } else {
      argument.kind = input.isTensor()       ? Argument::Kind::tensor
                      : input.isTensorList() ? Argument::Kind::tensors
                                             : Argument::Kind::optional_tensors;
      // References of one argument lie next to each other; looking one up may add values, never references.
      argument.first = static_cast<std::uint32_t>(recipes_.references.size());
      if (input.isTensor()) {
        recipes_.references.push_back(reference(input.toTensor(), index, 0));
      } else {
        int element = 0;
        for (const c10::IValue& one : input.toListRef()) {
          recipes_.references.push_back(one.isTensor() ? reference(one.toTensor(), index, element) : Reference());
          ++element;
        }
      }
      argument.count = static_cast<std::uint32_t>(recipes_.references.size()) - argument.first;
    }
    recipes_.arguments.push_back(argument);
  }

  Reference reference(const at::Tensor& tensor, int index, int element) {
    Reference result;
    if (!tensor.defined()) return result;
    result.defined = true;
    if (!libtorch::is_plain(tensor)) {
      recipe_.obstacle = "an argument is not a plain tensor on the CPU";
      result.plain = false;
      return result;
    }
    result.geometry = recipes_.add_geometry(tensor);
    const Access access = access_of(*recipe_.info, training_, index, tensor);
    c10::StorageImpl* const storage = libtorch::storage_of(tensor);
    const bool needs_contents = access == Access::read || access == Access::write;
    const Id value = needs_contents ? recording_.look_up(tensor) : recording_.find(storage);
    if (needs_contents) {
      result.value = value;
      ++recording_.live[value].uses;
    }
    if (access != Access::read) {
      if (access == Access::write && !recording_.rebuildable(value)) {
        recipe_.obstacle = "it changes a tensor from outside in place";
      }
      if (access == Access::overwrite) overwritten_.push_back(storage);
      recipes_.writes.push_back({static_cast<std::int16_t>(index), static_cast<std::int16_t>(element), access, value,
                                 static_cast<Bytes>(storage->nbytes())});
    }
    return result;
  }

  // What is overwritten may be read as another argument, and be met there for the first time: x.copy_(x), or
  // mul_out(x, x, y).
  void find_overwritten_inputs() {
    for (c10::StorageImpl* const storage : overwritten_) {
      const Id before = recording_.find(storage);
      if (before == no_value || recording_.rebuildable(before)) continue;
      for (std::size_t i = recipe_.start.references; i < recipes_.references.size(); ++i) {
        if (recipes_.references[i].value == before) recipe_.obstacle = "it changes a tensor from outside in place";
      }
    }
  }

  Recording& recording_;
  Recipes& recipes_;
  Recipe& recipe_;
  bool training_ = false;
  c10::SmallVector<c10::StorageImpl*, 2> overwritten_;
};

// ---- following recipes ---------------------------------------------------------------------------------------------

class ArgumentMatcher {
 public:
  ArgumentMatcher(Recording& recording, const Recipes& recipes, Id op)
      : recording_(recording), recipes_(recipes), op_(op) {}

  [[nodiscard]] bool matches(const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
    if (op_ >= static_cast<Id>(recipes_.operators.size())) return false;
    const Recipe& recipe = recipes_.operators[op_];
    if (recipe.info != &info || recipe.grad_mode != at::GradMode::is_enabled()) return false;
    if (recipe.default_type != libtorch::default_type()) return false;
    const auto arguments = recipes_.arguments_of(op_);
    if (arguments.size() != inputs.size()) return false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!matches(arguments[i], inputs[i])) return false;
    }
    return true;
  }

  // The recording follows these recipes, and their values from outside that were met here are known from now on.
  void accept() {
    for (const auto& [value, tensor] : met_) {
      const Id saved_before = recording_.find(libtorch::storage_of(*tensor));
      recording_.adopt_from_outside(value, *tensor);
      if (saved_before != no_value) recording_.follow_writes(saved_before, value);
    }
    for (const auto& [index, input] : changed_) recording_.changed_constants[index] = *input;
  }

 private:
  // Numbers may change from step to step (a rate, a weight in the loss): the bytes stay the same.
  static bool is_number(const c10::IValue& constant) {
    return constant.isDouble() || constant.isInt() || (constant.isTensor() && constant.toTensor().defined());
  }

  bool matches(const Argument& argument, const c10::IValue& input) {
    switch (argument.kind) {
      case Argument::Kind::constant: {
        if (!is_constant(input)) return false;
        const c10::IValue& expected = recipes_.constants[argument.first];
        if (same_constant(expected, input)) return true;
        if (!is_number(expected) || !is_number(input)) return false;
        changed_.emplace_back(argument.first, &input);
        return true;
      }
      case Argument::Kind::unknown: return input.isTensor() && !libtorch::is_plain(input.toTensor());
      case Argument::Kind::tensor:
        return input.isTensor() && !is_constant(input) &&
               matches(recipes_.references[argument.first], input.toTensor());
      case Argument::Kind::tensors:
      case Argument::Kind::optional_tensors: break;
    }
    if (!input.isList()) return false;
    const auto elements = input.toListRef();
    if (elements.size() != argument.count) return false;
    for (std::uint32_t k = 0; k < argument.count; ++k) {
      const Reference& reference = recipes_.references[argument.first + k];
      if (!elements[k].isTensor()) {
        if (reference.defined) return false;
      } else if (!matches(reference, elements[k].toTensor())) {
        return false;
      }
    }
    return true;
  }

  bool matches(const Reference& reference, const at::Tensor& tensor) {
    if (!tensor.defined() || !reference.defined) return tensor.defined() == reference.defined;
    if (!libtorch::is_plain(tensor) || !reference.plain) return libtorch::is_plain(tensor) == reference.plain;
    if (!recipes_.same_geometry(reference.geometry, tensor)) return false;
    return reference.value == no_value || holds(tensor, reference.value);
  }

  bool holds(const at::Tensor& tensor, Id expected) {
    c10::StorageImpl* const storage = libtorch::storage_of(tensor);
    const Id value = recording_.find(storage);
    if (value == expected) return !recording_.written_unseen(value);
    // A value from outside that is met for the first time; it may have been saved before any operator used it.
    if (recipes_.values[expected].maker != no_operator) return false;
    if (static_cast<std::size_t>(expected) < recording_.live.size() && recording_.live[expected].met) return false;
    if (value != no_value && value < static_cast<Id>(recording_.recipes->values.size())) return false;
    for (const auto& [other, met] : met_) {
      if ((other == expected) != (libtorch::storage_of(*met) == storage)) return false;
      if (other == expected) return true;
    }
    met_.emplace_back(expected, &tensor);
    return true;
  }

  Recording& recording_;
  const Recipes& recipes_;
  const Id op_;
  c10::SmallVector<std::pair<Id, const at::Tensor*>, 4> met_;
  c10::SmallVector<std::pair<std::uint32_t, const c10::IValue*>, 4> changed_;
};

// ---- one operator, from start to end -------------------------------------------------------------------------------

// The next moment begins. What happened since the last one belongs to it.
void begin_moment(Recording& r, Id op, const char* event_name, std::uint64_t event) {
  const Id moment = r.moment++;
  if (r.measuring_other) r.other.push_back({meter::take_other_peak(), 0});
  if (!r.observing) return;
  Observations& seen = r.seen;
  seen.moments.push_back({op, event});
  if (op != no_operator) {
    seen.moment_of.resize(static_cast<std::size_t>(op) + 1, -1);
    seen.moment_of[op] = moment;
  } else {
    seen.needs.resize(seen.moments.size());
    seen.event_names.resize(seen.moments.size());
    seen.event_names[moment] = event_name;
  }
  // Which values does the program no longer hold?
  seen.released.resize(r.live.size(), -1);
  auto& watched = seen.watched;
  for (std::size_t i = 0; i < watched.size();) {
    const Id value = watched[i];
    if (r.held_by_program(value)) {
      ++i;
      continue;
    }
    seen.released[value] = moment - 1;
    watched[i] = watched.back();
    watched.pop_back();
  }
}

void end_moment(Recording& r, float cost) {
  if (r.measuring_other && !r.other.empty()) r.other.back().within = meter::take_other_peak();
  if (r.observing && !r.seen.moments.empty()) r.seen.moments.back().cost = cost;
}

class OperatorCall {
 public:
  // Before the operator runs.
  static void start(Recording& r, const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
    const Id op = r.next;
    if (r.following) follow(r, info, inputs);
    if (!r.following) record(r, info, inputs);
    r.current = op;
    begin_writes(r, info, inputs);
  }

  static bool failed(const Recording& r, const at::RecordFunction& call) {
    return call.outputs().empty() && !r.recipes->operators[r.current].info->handle.schema().returns().empty();
  }

  // After it has run: what it made.
  static void take_results(Recording& r, const at::RecordFunction& call, draws::Recorder& drawn) {
    const auto& results = call.outputs();
    r.outputs_seen = 0;
    if (failed(r, call)) return fail(r);
    if (const char* const why = cannot_be_drawn_again(r, drawn)) give_up(r, "random numbers that no tape has", why);
    r.tapes[r.current] = std::move(drawn.tape);
    for (std::size_t i = 0; i < results.size(); ++i) take_result(r, results[i], static_cast<std::int16_t>(i));
    take_other_writes(r);
    if (r.following && r.outputs_seen != r.recipes->outputs_of(r.current).size()) diverge_in(r, "fewer results");
  }

  // The end of it: what was saved in it belongs to what it made.
  static void end(Recording& r, const at::RecordFunction& call) {
    const bool failed_now = failed(r, call);
    for (auto& write : r.current_writes) Arbiter::discard(std::move(write.storage));
    r.current_writes.clear();
    ++r.next;
    bind_waiting(r, failed_now);
    r.current = no_operator;
  }

  // What the policy says about the operator that has just run. Not under the lock: it is the user's.
  static void ask_policy(Recording& r, const at::RecordFunction& call) {
    if (!r.session->options.policy || r.following || failed(r, call)) return;
    PolicyOperator op;
    {
      const Arbiter lock;
      const Recipe& recipe = r.recipes->operators[r.current];
      op.name = recipe.info->name;
      op.random = recipe.info->random;
      if (recipe.module) op.module = *recipe.module;
      if (r.measuring) op.seconds = static_cast<double>(r.cost_of(r.current)) * 1e-6;
      for (const Output& output : r.recipes->outputs_of(r.current)) op.bytes += r.info(output.value).bytes;
    }
    for (const c10::IValue& result : call.outputs()) {
      if (result.isTensor() && result.toTensor().defined()) op.shapes.push_back(result.toTensor().sizes().vec());
    }
    const Choice choice = r.session->choose(op);
    const Arbiter lock;
    r.recipes->operators[r.current].choice = choice;
  }

 private:
  static void follow(Recording& r, const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
    const auto accepted = [&](const Recipes& recipes, const std::shared_ptr<Period>& another) {
      ArgumentMatcher matcher(r, recipes, r.next);
      if (!matcher.matches(info, inputs)) return false;
      if (another) r.change_to(another);
      matcher.accept();
      return true;
    };
    const auto accepted_instead = [&](const std::shared_ptr<Period>& another) {
      return accepted(*another->recipes, another);
    };
    if (!accepted(*r.recipes, nullptr) && !r.session->any_alternative(r, accepted_instead)) {
      const std::string expected = expected_name(r);
      r.diverge("operator " + std::to_string(r.next) + " was " + expected + " and is " + info.name +
                    (expected == info.name ? " with other arguments" : ""),
                std::nullopt);
      return;
    }
    for (const Reference& reference : r.recipes->references_of(r.next)) {
      if (reference.value != no_value) ++r.live[reference.value].uses;
    }
  }

  static std::string expected_name(const Recording& r) {
    return r.next < static_cast<Id>(r.recipes->operators.size()) ? r.recipes->operators[r.next].info->name
                                                                 : "the end of the forward pass";
  }

  static void record(Recording& r, const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
    Recipe recipe;
    recipe.info = &info;
    recipe.start = r.recipes->marks();
    recipe.obstacle = info.obstacle;
    recipe.grad_mode = at::GradMode::is_enabled();
    recipe.default_type = libtorch::default_type();
    ArgumentWriter(r, recipe).write(inputs);
    if (!recipe.obstacle) recipe.obstacle = r.session->distrusted(info, r.next);
    recipe.module = module_of(*r.session, inputs);
    r.recipes->operators.push_back(recipe);
    r.tapes.emplace_back();
    r.costs.push_back(0);
  }

  static const std::string* module_of(const SessionState& session, c10::ArrayRef<const c10::IValue> inputs) {
    const std::string* module = nullptr;
    const auto look_at = [&](const c10::IValue& input) {
      if (module || !input.isTensor() || !input.toTensor().defined() || !input.toTensor().has_storage()) return;
      module = session.module_of(libtorch::storage_of(input.toTensor()));
    };
    for (const c10::IValue& input : inputs) {
      look_at(input);
      if (!input.isTensorList()) continue;
      for (const c10::IValue& element : input.toListRef()) look_at(element);
    }
    return module;
  }

  static void diverge_in(Recording& r, const char* what) {
    r.diverge(
        "operator " + std::to_string(r.current) + ", " + r.recipes->operators[r.current].info->name + ", gave " + what,
        r.outputs_seen);
  }

  static const at::Tensor* tensor_at(c10::ArrayRef<const c10::IValue> inputs, const Write& write) {
    const c10::IValue& input = inputs[write.argument];
    return &(input.isTensor() ? input.toTensor() : input.toListRef()[write.element].toTensor());
  }

  // What was there was copied where recipes need it, see writes.h.
  static void begin_writes(Recording& r, const OperatorInfo& info, c10::ArrayRef<const c10::IValue> inputs) {
    if (!info.writes && !info.batch_norm) return;
    const auto writes = r.recipes->writes_of(r.current);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      c10::StorageImpl* const storage = libtorch::storage_of(*tensor_at(inputs, writes[i]));
      // Several arguments may be views of one storage: it is written once.
      bool again = false;
      for (const auto& other : r.current_writes) again |= other.storage.unsafeGetStorageImpl() == storage;
      if (again) continue;
      r.current_writes.push_back(
          {libtorch::share(storage), r.find(storage), static_cast<std::int16_t>(i), writes[i].access});
    }
  }

  // A kernel of the user's that is said to draw, and did not do so through LibTorch's operators, asked a generator
  // itself.
  static const char* cannot_be_drawn_again(const Recording& r, const draws::Recorder& drawn) {
    const OperatorInfo& info = *r.recipes->operators[r.current].info;
    if (drawn.incomplete) return "it draws from a generator that is not LibTorch's own";
    if (info.random && drawn.tape.empty() && !info.name.starts_with("aten::")) return "it draws in a way of its own";
    return nullptr;
  }

  // It ran, but cannot be replayed.
  static void give_up(Recording& r, const char* gave, const char* why) {
    if (r.recipes->operators[r.current].obstacle) return;
    if (r.following) diverge_in(r, gave);
    r.recipes->operators[r.current].obstacle = why;
  }

  // Contents of what was being written are unknown: nobody has them any more.
  static void fail(Recording& r) {
    give_up(r, "an error", "it failed");
    for (auto& write : r.current_writes) {
      if (write.before != no_value) r.unbind(write.storage.unsafeGetStorageImpl(), write.before);
    }
  }

  static void take_result(Recording& r, const c10::IValue& result, std::int16_t index) {
    if (result.isTensor()) {
      take_tensor(r, result.toTensor(), index, 0);
    } else if (result.isTensorList()) {
      std::int16_t element = 0;
      for (const c10::IValue& one : result.toListRef()) take_tensor(r, one.toTensor(), index, element++);
    }
  }

  static void take_tensor(Recording& r, const at::Tensor& tensor, std::int16_t result, std::int16_t element) {
    if (!tensor.defined() || !libtorch::is_plain(tensor)) return;
    c10::StorageImpl* const storage = libtorch::storage_of(tensor);
    if (!storage->data()) return;
    for (auto& write : r.current_writes) {
      if (write.storage.unsafeGetStorageImpl() != storage) continue;
      if (!write.done) take_write(r, write, &tensor);
      return;
    }
    if (r.find(storage) != no_value) return;  // a view of something known
    r.remember_version(take(r, storage, {no_value, result, element, -1}), tensor);
  }

  // Written arguments that are no results (noise, statistics, lists): the next version, too.
  static void take_other_writes(Recording& r) {
    for (auto& write : r.current_writes) {
      if (!write.done) take_write(r, write, nullptr);
    }
  }

  static void take_write(Recording& r, Recording::CurrentWrite& write, const at::Tensor* tensor) {
    write.done = true;
    c10::StorageImpl* const storage = write.storage.unsafeGetStorageImpl();
    const Id after = take(r, storage, {no_value, -1, 0, write.index});
    if (tensor) r.remember_version(after, *tensor);
    if (write.before != no_value && write.before != after) r.follow_writes(write.before, after);
    // Saved tensors of other recordings that saw no write go on with the contents, too.
    for (Recording* const other : recordings()) {
      if (other != &r) other->after_write(storage, tensor ? libtorch::version_of(*tensor) : libtorch::Version());
    }
  }

  // A value that the operator in hand has made.
  static Id take(Recording& r, c10::StorageImpl* storage, Output output) {
    const meter::Header* const header = meter::header_of(*storage);
    const Bytes bytes = header ? header->bytes : static_cast<Bytes>(storage->nbytes());
    if (r.following) {
      const auto expected = r.recipes->outputs_of(r.current);
      const Output* const next = r.outputs_seen < expected.size() ? &expected[r.outputs_seen] : nullptr;
      if (next && next->result == output.result && next->element == output.element && next->write == output.write &&
          r.info(next->value).bytes == bytes) {
        output.value = next->value;
        r.bind(storage, output.value);
      } else {
        diverge_in(r, "results of other sizes");
      }
    }
    if (!r.following) {
      const Recipe& recipe = r.recipes->operators[r.current];
      const bool rebuilt =
          !recipe.obstacle && header &&
          (output.write < 0 || r.recipes->writes_of(r.current)[output.write].access != Access::statistic);
      output.value = r.add_made(storage, rebuilt ? r.current : no_operator);
      const auto& unwritten = recipe.info->unwritten_results;
      r.recipes->values[output.value].scratch =
          output.write < 0 && std::find(unwritten.begin(), unwritten.end(), output.result) != unwritten.end();
      r.recipes->outputs.push_back(output);
    }
    ++r.outputs_seen;
    if (!r.rebuildable(output.value)) {
      if (r.keep_outside) r.live[output.value].kept = libtorch::share(storage);
      if (!header || r.recipes->operators[r.current].obstacle) r.session->count_kept(*r.recipes, r.current, bytes);
    } else if (r.observing) {
      r.seen.watched.push_back(output.value);
    }
    if (r.executor) r.executor->made(r, output.value, storage);
    return output.value;
  }

  static void bind_waiting(Recording& r, bool failed) {
    auto waiting = std::move(r.waiting);
    r.waiting.clear();
    for (SavedHook* const hook : waiting) {
      if (failed) {
        hook->give_up();
      } else {
        hook->bind_late();
      }
    }
  }
};

// ---- callbacks -----------------------------------------------------------------------------------------------------

// What a start callback returns for its end callback: it lives as long as the operator runs.
struct Context final : at::ObserverContext {
  std::optional<draws::Recorder> drawn;  // of one that is recorded
  writes::Written written;               // by one that is not
  bool cpu_time = false;                 // of the two clocks
  double start = 0;

  void begin(bool of_cpu) {
    cpu_time = of_cpu;
    start = of_cpu ? thread_microseconds() : wall_microseconds();
  }
  [[nodiscard]] float elapsed() const {
    return static_cast<float>((cpu_time ? thread_microseconds() : wall_microseconds()) - start);
  }
};

// Long enough to be worth a system call for the time that it really takes.
bool takes_long(c10::ArrayRef<const c10::IValue> inputs) {
  constexpr std::size_t much = 64 << 10;
  for (const c10::IValue& input : inputs) {
    if (input.isTensor() && input.toTensor().defined() && input.toTensor().has_storage() &&
        libtorch::storage_of(input.toTensor())->nbytes() >= much) {
      return true;
    }
  }
  return false;
}

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& call) {
  ThreadState& here = this_thread();
  if (!here.session || here.inside > 0) return nullptr;
  if (here.met_inside) {  // what runs below autograd is a part of that operator
    if (c10::impl::tls_local_dispatch_key_set().excluded_.has_any(c10::autograd_dispatch_keyset)) return nullptr;
    here.met_inside = false;
  }
  const OperatorInfo* const info = find_operator(call);
  if (!info || info->kind == OperatorInfo::Kind::transparent || info->kind == OperatorInfo::Kind::ignored)
    return nullptr;
  if (info->kind == OperatorInfo::Kind::opaque) {
    ++here.inside;
    return std::make_unique<Context>();
  }
  if (info->autocast && !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCPU)) {
    return nullptr;  // the cast and the call below it are recorded instead
  }

  begin_period_if_over();
  if (!here.recording) return nullptr;  // a step that is not recorded has begun
  Recording& r = *here.recording;
  writes::Written written = writes::written_by(*info, call.inputs());
  writes::save_contents(written);
  auto context = std::make_unique<Context>();
  if (r.pending() == 0 && !at::GradMode::is_enabled()) {  // not recorded, but it changes what it writes
    if (written.empty()) return nullptr;
    context->written = std::move(written);
    ++here.inside;
    return context;
  }
  if (r.executor) r.executor->before(r, r.moment);  // may run operators: not under the lock
  context->drawn.emplace();
  try {
    const Arbiter lock;
    OperatorCall::start(r, *info, call.inputs());
    begin_moment(r, r.current, nullptr, 0);
  } catch (...) {  // out of memory: what is saved stays what it is, and a new period begins
    here.recording.reset();
    throw;
  }
  ++here.inside;
  if (r.measuring) context->begin(takes_long(call.inputs()));
  return context;
}

void on_operator_end(const at::RecordFunction& call, at::ObserverContext* given) {
  if (!given) return;
  ThreadState& here = this_thread();
  --here.inside;
  Context& context = *static_cast<Context*>(given);
  if (!context.drawn) return writes::take_over(context.written);
  if (!here.recording) return;
  Recording& r = *here.recording;
  const Id op = r.current;
  {
    const Arbiter lock;
    if (r.measuring) {
      const float cost = context.elapsed();
      r.costs[op] = r.following && r.costs[op] > 0 ? std::min(r.costs[op], cost) : cost;
    }
    r.now += r.cost_of(op);
    end_moment(r, r.cost_of(op));
    OperatorCall::take_results(r, call, *context.drawn);
  }
  OperatorCall::ask_policy(r, call);
  {
    const Arbiter lock;
    OperatorCall::end(r, call);
    if (r.measuring_other) (void)meter::take_other_peak();  // what it made is a value now
  }
  if (r.executor) r.executor->after(r, r.moment - 1);
}

std::uint64_t hash(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

std::unique_ptr<at::ObserverContext> on_node(const at::RecordFunction& call) {
  ThreadState& here = this_thread();
  if (!here.recording || !here.recording->in_backward) return nullptr;
  Recording& r = *here.recording;
  const std::uint64_t name = hash(call.name());
  if (r.executor && !r.executor->expects(r.moment, name)) {
    const Arbiter lock;
    r.diverge("backward ran " + std::string(call.name()) + " at another place than before", std::nullopt);
  }
  if (r.executor) r.executor->before(r, r.moment);
  {
    const Arbiter lock;
    begin_moment(r, no_operator, call.name(), name);
    r.rebuilding = 0;
  }
  auto context = std::make_unique<Context>();
  if (r.observing) context->begin(false);
  return context;
}

void on_node_end(const at::RecordFunction&, at::ObserverContext* given) {
  ThreadState& here = this_thread();
  if (!given || !here.recording) return;
  Recording& r = *here.recording;
  {
    const Arbiter lock;
    const float cost = r.observing ? static_cast<Context*>(given)->elapsed() - static_cast<float>(r.rebuilding) : 0;
    end_moment(r, std::max(0.0f, cost));
  }
  if (r.executor) r.executor->after(r, r.moment - 1);
}

}  // namespace

void watch_operators(bool on) {
  auto& handle = this_thread().operators;
  if (on == handle.has_value()) return;
  if (on) {
    handle = at::addThreadLocalCallback(at::RecordFunctionCallback(on_operator, on_operator_end)
                                            .needsInputs(true)
                                            .needsOutputs(true)
                                            .scopes({at::RecordScope::FUNCTION}));
  } else {
    at::removeCallback(*handle);
    handle.reset();
  }
  draws::watch(on);
}

void watch_nodes(bool on) {
  auto& handle = this_thread().nodes;
  if (on == handle.has_value()) return;
  if (on) {
    handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback(on_node, on_node_end).scopes({at::RecordScope::BACKWARD_FUNCTION}));
  } else {
    at::removeCallback(*handle);
    handle.reset();
  }
}

}  // namespace reprise::internal
