#include "torch/draws.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <mutex>
#include <optional>
#include <string>

#include "torch/arbiter.h"
#include "torch/interception.h"
#include "torch/libtorch_versions.h"

namespace reprise::internal::draws {
namespace {

// What this thread records, plays, and draws right now. Pointers, which are there as long as the thread is.
thread_local Recorder* recorder = nullptr;
thread_local Player* player = nullptr;

// A draw under way: the generator that was meant, and the private one in its place.
struct Substitute {
  const c10::GeneratorImpl* meant = nullptr;
  at::Generator own;
  Substitute* outer = nullptr;
};
thread_local Substitute* under_way = nullptr;

// An operator that draws may call others that draw: they go on with the same private generator.
class UnderWay {
 public:
  explicit UnderWay(const c10::GeneratorImpl* meant) : substitute_{meant, at::detail::createCPUGenerator(), under_way} {
    under_way = &substitute_;
  }
  ~UnderWay() { under_way = substitute_.outer; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  [[nodiscard]] const at::Generator& own() const { return substitute_.own; }
  [[nodiscard]] at::CPUGeneratorImpl& state() const {
    return *at::check_generator<at::CPUGeneratorImpl>(substitute_.own);
  }

 private:
  Substitute substitute_;
};

bool is_generator(const c10::Argument& argument) {
  const c10::Type& type = *argument.type();
  if (type.kind() == c10::TypeKind::GeneratorType) return true;
  return type.kind() == c10::TypeKind::OptionalType &&
         type.castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

c10::IValue* generator_in(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_generator(arguments[i])) return &stack[stack.size() - arguments.size() + i];
  }
  return nullptr;
}

}  // namespace

class Watcher {
 public:
  static void call(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
    c10::IValue* const argument = generator_in(op, *stack);
    if (!argument || (!recorder && !player) || libtorch::python_is_below(below)) {
      return op.redispatchBoxed(below, stack);
    }
    const at::Generator meant =
        argument->isGenerator() ? argument->toGenerator() : at::detail::getDefaultCPUGenerator();
    for (const Substitute* one = under_way; one; one = one->outer) {
      if (one->own.unsafeGetGeneratorImpl() == meant.unsafeGetGeneratorImpl()) return op.redispatchBoxed(below, stack);
      if (one->meant == meant.unsafeGetGeneratorImpl()) {
        *argument = one->own;
        return op.redispatchBoxed(below, stack);
      }
    }
    auto* const generator = dynamic_cast<at::CPUGeneratorImpl*>(meant.unsafeGetGeneratorImpl());
    if (!generator) {
      for (Recorder* one = recorder; one; one = one->outer_) one->incomplete_ = true;
      return op.redispatchBoxed(below, stack);
    }
    const auto run = [&](const UnderWay& draw) {
      *argument = draw.own();
      op.redispatchBoxed(below, stack);
    };
    if (player) {
      play(*player, generator, run);
    } else {
      record(*generator, run);
    }
  }

 private:
  template <class Run>
  static void record(at::CPUGeneratorImpl& generator, const Run& run) {
    Arbiter::expect_free("a generator is locked");
    const std::scoped_lock lock(generator.mutex_);
    const UnderWay draw(&generator);
    Draw seen{libtorch::state_of(generator)};
    libtorch::restore(draw.state(), seen.before);
    // Also after an error: what was drawn until then is drawn.
    const auto go_on = [&] {
      const libtorch::RandomState after = libtorch::state_of(draw.state());
      libtorch::restore(generator, after);
      seen.after = libtorch::fingerprint(after);
      for (Recorder* one = recorder; one; one = one->outer_) one->tape_.push_back(seen);
    };
    try {
      run(draw);
    } catch (...) {
      go_on();
      throw;
    }
    go_on();
  }

  template <class Run>
  static void play(Player& from, const c10::GeneratorImpl* meant, const Run& run) {
    if (from.next_ == from.tape_.size()) {
      throw OffTheTape("it drew " + std::to_string(from.tape_.size()) + " times and now draws once more");
    }
    const Draw& recorded = from.tape_[from.next_++];
    const UnderWay draw(meant);
    libtorch::restore(draw.state(), recorded.before);
    run(draw);
    if (libtorch::fingerprint(libtorch::state_of(draw.state())) != recorded.after) {
      throw OffTheTape("it now draws another amount of random numbers");
    }
  }
};

namespace {

void on_draw(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  Watcher::call(op, keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, libtorch::key_of_draws), stack);
}

// Operators with a kernel of their own that takes a generator: all others are composed of them.
bool draws(const c10::OperatorHandle& op) {
  using Key = c10::DispatchKey;
  for (const Key composed : {Key::CompositeImplicitAutograd, Key::CompositeExplicitAutograd}) {
    if (op.hasKernelForDispatchKey(composed)) return false;
  }
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (is_generator(argument)) return true;
  }
  return false;
}

std::optional<c10::KernelFunction> kernel_for(const c10::OperatorHandle& op) {
  if (!draws(op)) return std::nullopt;
  return c10::KernelFunction::makeFromBoxedFunction<&on_draw>();
}

Interception& interception() {
  static auto& one = *new Interception(libtorch::key_of_draws, kernel_for);
  return one;
}
const bool made = (interception(), true);  // when the library is loaded: a fork may come at any time after that

}  // namespace

void watch(bool on) {
  if (on) interception().update();
  c10::impl::tls_set_dispatch_key_included(libtorch::key_of_draws, on || recorder);
}

Recorder::Recorder() : outer_(recorder) {
  recorder = this;
}
Recorder::~Recorder() {
  recorder = outer_;
}

Player::Player(const Tape& tape) : tape_(tape), outer_(player), watched_(libtorch::key_of_draws) {
  player = this;
}
Player::~Player() {
  player = outer_;
}

void Player::finish() const {
  if (next_ == tape_.size()) return;
  throw OffTheTape("it drew " + std::to_string(tape_.size()) + " times and now draws only " + std::to_string(next_));
}

}  // namespace reprise::internal::draws
