#include "torch/recipes/random_tape.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/memory/interception.h"
#include "torch/recipes/rollback.h"

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
  explicit UnderWay(const c10::GeneratorImpl& meant)
      : substitute_{&meant, libtorch::new_generator(meant.device()), under_way} {
    under_way = &substitute_;
  }
  ~UnderWay() { under_way = substitute_.outer; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  [[nodiscard]] const at::Generator& own() const { return substitute_.own; }
  [[nodiscard]] c10::GeneratorImpl& state() const { return *substitute_.own.unsafeGetGeneratorImpl(); }

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

// The device that an operator works on: that of its first tensor that is not the CPU's.
c10::Device device_of(const c10::IValue& argument) {
  c10::Device device(c10::DeviceType::CPU);
  if (argument.isTensor() && argument.toTensor().defined()) device = argument.toTensor().device();
  if (!argument.isTensorList()) return device;
  for (const c10::IValue& element : argument.toListRef()) {
    if (device.is_cpu()) device = device_of(element);
  }
  return device;
}
c10::Device device_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    if (const c10::Device device = device_of(argument); !device.is_cpu()) return device;
  }
  return c10::Device(c10::DeviceType::CPU);
}

// ---- operators without a kernel for their device ----

bool has_own_kernel(const c10::OperatorHandle& op, c10::Device device) {
  const c10::DispatchKey key = c10::computeDispatchKey(at::kFloat, c10::kStrided, device);
  return op.hasKernelForDispatchKey(key);
}

// They run by the device's fallback, and that decides which generator they draw from: LibTorch's own fallback computes
// on the CPU, with the CPU's, and refuses one of the device. It is found out at the first call of each operator.
class Fallbacks {
 public:
  // Where it draws from; none: that is not known yet.
  [[nodiscard]] std::optional<c10::Device> find(const c10::OperatorHandle& op, c10::Device device) {
    std::pair name(c10::toString(op.operator_name()), device.type());
    const Arbiter lock;
    const auto found = is_on_cpu_.find(name);
    if (found == is_on_cpu_.end()) return std::nullopt;
    return found->second ? c10::Device(c10::DeviceType::CPU) : device;
  }
  void learn(const c10::OperatorHandle& op, c10::Device device, bool is_on_cpu) {
    std::pair name(c10::toString(op.operator_name()), device.type());
    const Arbiter lock;
    is_on_cpu_.emplace(std::move(name), is_on_cpu);
  }
  void unlearn(const c10::OperatorHandle& op, c10::Device device) {
    const std::pair name(c10::toString(op.operator_name()), device.type());
    const Arbiter lock;
    is_on_cpu_.erase(name);
  }

 private:
  std::map<std::pair<std::string, c10::DeviceType>, bool> is_on_cpu_;
};
Fallbacks& fallbacks() {
  static auto& one = *new Fallbacks;
  return one;
}

// Held while an operator draws from the generator of a device that it was not given. What it calls is a part of it.
constinit std::mutex drawing_from_device;
thread_local bool draws_from_device = false;
struct Inside {
  Inside() { draws_from_device = true; }
  ~Inside() { draws_from_device = false; }
};

}  // namespace

class Watcher {
 public:
  static void call(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
    if (Undo* const undo = Undo::of_this_thread(); undo && !player && !under_way) {
      announce(*undo, generator_in(op, *stack));
    }
    Call call{op, below, stack};
    if ((!recorder && !player) || draws_from_device) return call.run();
    call.argument = generator_in(op, *stack);
    if (!call.has_generator()) call.device = device_of(op, *stack);
    if (!libtorch::is_counted(call.device)) return run_unseen(call);
    find_fallback(call);
    if (call.argument) return draw_from_argument(call);
    draw_from_device(call);
  }

 private:
  // An operator that may draw, and what is known about where from.
  struct Call {
    const c10::OperatorHandle& op;
    const c10::DispatchKeySet below;
    torch::jit::Stack* const stack;
    c10::IValue* argument = nullptr;           // that takes a generator; null: none
    c10::Device device{c10::DeviceType::CPU};  // whose default generator it draws from, if it is given none
    bool is_trial = false;                     // whether it does is not known yet

    void run() const { op.redispatchBoxed(below, stack); }
    [[nodiscard]] bool has_generator() const { return argument && argument->isGenerator(); }
  };

  static void run_unseen(const Call& call) {
    lose_draw();
    call.run();
  }

  static void find_fallback(Call& call) {
    if (call.device.is_cpu() || has_own_kernel(call.op, call.device)) return;
    const auto drawn_from = fallbacks().find(call.op, call.device);
    call.is_trial = !drawn_from && !player;
    call.device = drawn_from.value_or(call.device);
  }

  static void draw_from_device(const Call& call) {
    if (call.device.is_cpu()) return call.run();  // it calls others that draw
    const auto run = [&] { call.run(); };
    const at::Generator generator = libtorch::default_generator(call.device);
    if (!call.is_trial) return from_device(generator, run);
    const std::uint64_t of_device = fingerprint_of(call.device), of_cpu = fingerprint_of(c10::DeviceType::CPU);
    from_device(generator, run);
    if (fingerprint_of(call.device) != of_device) return fallbacks().learn(call.op, call.device, false);
    if (fingerprint_of(c10::DeviceType::CPU) == of_cpu) return;  // it has not drawn
    lose_draw();
    fallbacks().learn(call.op, call.device, true);
  }

  static void draw_from_argument(const Call& call) {
    const at::Generator meant =
        call.has_generator() ? call.argument->toGenerator() : libtorch::default_generator(call.device);
    if (goes_on_in_outer(call, meant)) return;
    c10::GeneratorImpl& generator = *meant.unsafeGetGeneratorImpl();
    if (!libtorch::has_state(generator)) return run_unseen(call);
    const auto run = [&](const UnderWay& draw) {
      *call.argument = draw.own();
      call.run();
    };
    if (player) return play(*player, generator, run);
    if (call.is_trial) return try_device_then_cpu(call, generator, run);
    (void)record(generator, run);
  }

  // An operator inside of one that draws goes on with the private generator of that one.
  static bool goes_on_in_outer(const Call& call, const at::Generator& meant) {
    for (const Substitute* one = under_way; one; one = one->outer) {
      const bool is_own = one->own.unsafeGetGeneratorImpl() == meant.unsafeGetGeneratorImpl();
      if (!is_own && one->meant != meant.unsafeGetGeneratorImpl()) continue;
      if (!is_own) *call.argument = one->own;
      call.run();
      return true;
    }
    return false;
  }

  // The fallback of a device may draw from its generator, or refuse that one and draw from the CPU's.
  template <class Run>
  static void try_device_then_cpu(const Call& call, c10::GeneratorImpl& of_device, const Run& run) {
    torch::jit::Stack& stack = *call.stack;
    const auto arguments = torch::jit::last(stack, call.op.schema().arguments().size());
    const torch::jit::Stack given(arguments.begin(), arguments.end());
    const std::size_t others = stack.size() - given.size();
    if (record(of_device, run, true)) return fallbacks().learn(call.op, call.device, false);
    stack.resize(others);
    stack.insert(stack.end(), given.begin(), given.end());
    fallbacks().learn(call.op, call.device, true);
    try {
      Watcher::call(call.op, call.below, call.stack);
    } catch (...) {  // that was not the reason
      fallbacks().unlearn(call.op, call.device);
      throw;
    }
  }

  // The default generator is known to it.
  static void announce(Undo& undo, const c10::IValue* given) {
    if (given && given->isGenerator()) undo.before_draw(given->toGenerator());
  }
  static void lose_draw() {
    for (Recorder* one = recorder; one; one = one->outer_) one->incomplete_ = true;
  }
  static void add_draw(const Draw& draw) {
    for (Recorder* one = recorder; one; one = one->outer_) one->tape_.push_back(draw);
  }

  // False: it refuses a generator of this kind, or something else, and has drawn nothing. Only if it may.
  template <class Run>
  static bool record(c10::GeneratorImpl& generator, const Run& run, bool may_refuse = false) {
    Arbiter::expect_free("a generator is locked");
    const std::scoped_lock lock(generator.mutex_);
    const UnderWay draw(generator);
    Draw seen{libtorch::state_of(generator)};
    libtorch::restore(draw.state(), seen.before);
    const auto go_on = [&] {
      const libtorch::RandomState after = libtorch::state_of(draw.state());
      libtorch::restore(generator, after);
      seen.after = libtorch::fingerprint(after);
      add_draw(seen);
    };
    try {
      run(draw);
    } catch (const c10::Error&) {
      if (may_refuse) return false;
      go_on();
      throw;
    } catch (...) {  // what was drawn until then is drawn
      go_on();
      throw;
    }
    go_on();
    return true;
  }

  static const Draw& next_of(Player& player) {
    if (player.next_ == player.tape_.size()) {
      throw OffTheTape("it drew " + std::to_string(player.tape_.size()) + " times and now draws once more");
    }
    return player.tape_[player.next_++];
  }
  static void check_end(c10::GeneratorImpl& generator, const Draw& recorded) {
    if (libtorch::fingerprint(libtorch::state_of(generator)) != recorded.after) {
      throw OffTheTape("it now draws another amount of random numbers");
    }
  }

  template <class Run>
  static void play(Player& from, const c10::GeneratorImpl& meant, const Run& run) {
    const Draw& recorded = next_of(from);
    const UnderWay draw(meant);
    libtorch::restore(draw.state(), recorded.before);
    run(draw);
    check_end(draw.state(), recorded);
  }

  // An operator that draws from the generator of a device by itself. It locks the generator, so no other thread can
  // meanwhile.
  template <class Run>
  static void from_device(const at::Generator& given, const Run& run) {
    c10::GeneratorImpl& generator = *given.unsafeGetGeneratorImpl();
    if (!libtorch::has_state(generator)) {
      lose_draw();
      return run();
    }
    Arbiter::expect_free("a generator is locked");
    const std::scoped_lock lock(drawing_from_device);
    const Inside inside;
    const auto now = locked(generator, [&] { return libtorch::state_of(generator); });
    if (!player) {
      run();
      Draw seen{now};
      locked(generator, [&] { seen.after = libtorch::fingerprint(libtorch::state_of(generator)); });
      return add_draw(seen);
    }
    struct GoOn {  // also after an error: the program's stream is what it was
      c10::GeneratorImpl& generator;
      const libtorch::RandomState& now;
      ~GoOn() {
        locked(generator, [&] { libtorch::restore(generator, now); });
      }
    } const go_on{generator, now};
    const Draw& recorded = next_of(*player);
    locked(generator, [&] { libtorch::restore(generator, recorded.before); });
    run();
    locked(generator, [&] { check_end(generator, recorded); });
  }

  template <class Function>
  static auto locked(c10::GeneratorImpl& generator, const Function& function) {
    const std::scoped_lock lock(generator.mutex_);
    return function();
  }

  static std::uint64_t fingerprint_of(c10::Device device) {
    const at::Generator generator = libtorch::default_generator(device);
    c10::GeneratorImpl& impl = *generator.unsafeGetGeneratorImpl();
    Arbiter::expect_free("a generator is locked");
    const std::scoped_lock lock(impl.mutex_);
    return libtorch::has_state(impl) ? libtorch::fingerprint(libtorch::state_of(impl)) : 0;
  }
};

namespace {

void on_draw(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  Watcher::call(op, keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, libtorch::key_of_draws), stack);
}

// Operators with a kernel of their own that takes a generator, or that draws without: all others are composed of them.
bool draws(const c10::OperatorHandle& op) {
  using Key = c10::DispatchKey;
  for (const Key composed : {Key::CompositeImplicitAutograd, Key::CompositeExplicitAutograd}) {
    if (op.hasKernelForDispatchKey(composed)) return false;
  }
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (is_generator(argument)) return true;
  }
  return op.hasTag(at::Tag::nondeterministic_seeded);
}

std::optional<c10::KernelFunction> kernel_for(const c10::OperatorHandle& op) {
  // A kernel that is there chooses the device, and what it calls comes by again.
  if (!draws(op) || op.hasKernelForDispatchKey(libtorch::key_of_draws)) return std::nullopt;
  return c10::KernelFunction::makeFromBoxedFunction<&on_draw>();
}

Interception& interception() {
  static auto& one = *new Interception(libtorch::key_of_draws, kernel_for);
  return one;
}
// When the library is loaded: later, other threads may be calling what is replaced, and a fork may come at any time.
const bool installed = interception().install();

}  // namespace

void prepare() {
  interception().update();
}

Recorder::Recorder() : outer_(recorder) {
  recorder = this;
}
Recorder::~Recorder() {
  recorder = outer_;
}

Player::Player(const Tape& tape) : tape_(tape), outer_(player) {
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
