#include "torch/replay/replay_call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "reprise/torch/errors.h"
#include "torch/memory/arbiter.h"

namespace reprise::internal {
namespace {

// Operators run as they did below autograd and autocast, and are not recorded. Modes of the thread, which count or
// change operators, have seen this one already, or are about whatever asked for the replay (a batched backward, a
// tracer).
class BelowAutograd {
 public:
  BelowAutograd()
      : autograd_(c10::autograd_dispatch_keyset_with_ADInplaceOrView),
        autocast_(c10::autocast_dispatch_keyset),
        modes_(libtorch::keys_of_modes),
        recording_(false) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard autograd_, autocast_, modes_;
  at::RecordFunctionGuard recording_;
};

// The default type as it was. It belongs to the whole process, so it is only touched if it was another one and the
// results may depend on it.
class DefaultTypeAsRecorded {
 public:
  explicit DefaultTypeAsRecorded(std::optional<at::ScalarType> type)
      : before_(libtorch::default_type()), changed_(type && *type != before_) {
    if (changed_) libtorch::default_type(*type);
  }
  ~DefaultTypeAsRecorded() {
    if (changed_) libtorch::default_type(before_);
  }
  DefaultTypeAsRecorded(const DefaultTypeAsRecorded&) = delete;
  DefaultTypeAsRecorded& operator=(const DefaultTypeAsRecorded&) = delete;

 private:
  const at::ScalarType before_;
  const bool changed_;
};

}  // namespace

ReplayCall::ReplayCall(const Arbiter&, const Recording& r, Id op) {
  const Recipes& recipes = r.cursor().recipes();
  const Recipe& recipe = recipes.operators[op];
  info = recipe.info;
  grad_mode = recipe.grad_mode;
  settings = recipe.settings;
  tape = r.cursor().tape(op);
  bool has_fractions = false;
  const auto all_writes = recipes.writes_of(op);
  writes.append(all_writes.begin(), all_writes.end());
  for (const internal::Argument& argument : recipes.arguments_of(op)) {
    Argument& own = arguments.emplace_back();
    own.kind = argument.kind;
    if (argument.kind == internal::Argument::Kind::constant) {
      own.constant = r.cursor().constant(argument.first);
      if (own.constant.isGenerator()) own.constant = c10::IValue();  // the tape plays to whichever it asks for
    } else if (argument.kind != internal::Argument::Kind::unknown) {
      for (std::uint32_t k = 0; k < argument.count; ++k) {
        const Reference& reference = recipes.references[argument.first + k];
        own.inputs.push_back({reference.value, reference.defined, reference.view});
        has_fractions |= reference.defined && !c10::isIntegralType(reference.view.dtype, true);
      }
    }
  }
  if (!has_fractions) default_type = recipe.default_type;
}

void ReplayCall::run(torch::jit::Stack& stack) const {
  const BelowAutograd below;
  const at::AutoGradMode mode(grad_mode);
  const DefaultTypeAsRecorded type(default_type);
  const WithSettings as_recorded(settings);
  const draws::Player random(tape);
  Arbiter::expect_free("an operator is replayed");
  if (info->gone) {
    throw SessionError("[replay] operator '" + info->name +
                       "' has made a value that was evicted, and the library that it belongs to was taken away since: "
                       "keep the library until backward is over");
  }
  info->handle.callBoxed(&stack);
  random.finish();
}

}  // namespace reprise::internal
