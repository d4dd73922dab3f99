#include "torch/hooks/backward.h"

#include <c10/core/AutogradState.h>

#include <optional>
#include <typeinfo>

#include "torch/evict/offloaded_gradients.h"
#include "torch/evict/writes.h"
#include "torch/hooks/automatic.h"
#include "torch/hooks/recorder.h"
#include "torch/hooks/saved.h"
#include "torch/libtorch/libtorch_versions.h"
#include "torch/memory/arbiter.h"
#include "torch/session/session_state.h"
#include "torch/session/thread_state.h"

namespace reprise::internal {
namespace {

using torch::autograd::Engine;

// While backward runs on this thread. Operators of backward are not recorded, unless they are to be differentiated
// again: then the callbacks stay. They are removed and not only switched off, because the engine installs the
// thread's state for every node, and that costs more with callbacks that are there.
class InBackward {
 public:
  InBackward(std::shared_ptr<Recording> recording, bool create_graph, bool gradients_may_wait)
      : recording_(std::move(recording)) {
    bool watched = false;
    {
      const Arbiter lock;
      recording_->begin_backward();
      Journal& journal = recording_->journal();
      watched = journal.observing() || journal.measuring_other() || recording_->plan() || gradients_may_wait;
      if (!watched) journal.lose_count();
    }
    if (!create_graph) watch_operators(Watch::off);
    watch_nodes(watched ? Watch::on : Watch::off);
  }
  ~InBackward() {
    (void)end();
    watch_nodes(Watch::off);
    watch_operators(Watch::on);
  }
  // Returns whether the pass left nothing of its own pending, see Pending::end_backward.
  [[nodiscard]] bool end() {
    if (ended_) return false;
    ended_ = true;
    const Arbiter lock;
    return recording_->end_backward();
  }
  InBackward(const InBackward&) = delete;
  InBackward& operator=(const InBackward&) = delete;

 private:
  std::shared_ptr<Recording> recording_;
  bool ended_ = false;
};

// Hooks that the program itself has asked for: what they pack is theirs, and only counted.
class HooksOfTheProgram final : public libtorch::DelegatingHooks {
 public:
  using DelegatingHooks::DelegatingHooks;
  void call_pack_hook(const at::Tensor& tensor) override {
    if (const auto& source = this_thread().source) {
      const Bytes bytes = libtorch::bytes_of_contents(tensor);
      const Arbiter lock;
      source->context().counters().kept("saved_tensors_hooks", "what hooks of the program pack is theirs", bytes);
    }
    DelegatingHooks::call_pack_hook(tensor);
  }
};

class WatchedEngine final : public libtorch::DelegatingEngine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    const ThreadState& here = this_thread();
    if (auto theirs = DelegatingEngine::get_default_saved_variable_hooks()) {  // they come first
      if (here.source) return std::make_unique<HooksOfTheProgram>(std::move(theirs));
      return theirs;
    }
    if (here.in_traced || libtorch::is_traced()) return nullptr;  // the graph is that of the program alone
    if (here.infers_device == InfersDevice::second) here.step->check_devices();
    if (!here.recording) {
      automatic::meet_thread();
      return nullptr;
    }
    // A forward inside of backward (a checkpoint that runs again): it is not recorded, so it saves as it always does.
    if (here.recording->in_backward() && !here.operators) return nullptr;
    if (here.recording->context().is_capturing()) return nullptr;  // nor that
    return std::make_unique<SavedHook>();
  }

  variable_list execute(const edge_list& roots, const variable_list& inputs, bool keep_graph, bool create_graph,
                        bool accumulate_grad, const edge_list& outputs) override {
    BackwardRun run(create_graph);
    variable_list gradients =
        DelegatingEngine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    run.succeeded();
    return gradients;
  }
};

WatchedEngine& watched_engine() {
  static auto* const engine = new WatchedEngine;
  return *engine;
}

}  // namespace

// Backward of work on an accelerator runs on this thread as well, and not on one that LibTorch has for the device: what
// is recorded, planned and recomputed belongs to this one.
class OnThisThread {
 public:
  OnThisThread() : before_(c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
  ~OnThisThread() { c10::AutogradState::get_tls_state().set_multithreading_enabled(before_); }
  OnThisThread(const OnThisThread&) = delete;
  OnThisThread& operator=(const OnThisThread&) = delete;

 private:
  const bool before_;
};

// Its members end in the opposite order.
struct BackwardRun::Inside {
  std::shared_ptr<Recording> recording;
  std::optional<OnThisThread> on_this_thread;
  std::optional<OffloadedGradients> gradients;
  std::optional<InBackward> in_backward;
  std::optional<writes::Watch> watch;
};

BackwardRun::BackwardRun(bool create_graph) : inside_(std::make_unique<Inside>()) {
  inside_->recording = this_thread().recording;
  const auto& recording = inside_->recording;
  if (recording && recording->context().accelerator()) inside_->on_this_thread.emplace();
  if (recording && !recording->in_backward()) {
    if (recording->context().has_tier() && !create_graph) inside_->gradients.emplace(recording->shared_context());
    inside_->in_backward.emplace(recording, create_graph, inside_->gradients.has_value());
  }
  if (!create_graph) inside_->watch.emplace();  // else everything is recorded
}

BackwardRun::~BackwardRun() = default;

void BackwardRun::succeeded() {
  if (auto& gradients = inside_->gradients) gradients->bring_back();
  inside_->watch.reset();
  const auto& recording = inside_->recording;
  if (auto& in_backward = inside_->in_backward) {
    const bool complete = in_backward->end();
    in_backward.reset();
    // Without steps of the user's, a graph that the program keeps for ever would be in one endless pass.
    if (recording->values().pending().count() == 0 || (complete && automatic::is_on())) end_pass();
  } else if (!recording) {
    automatic::end_step();
  }
}

void install_engine() {
  Engine& there = Engine::get_default_engine();
  if (&there == &watched_engine()) return;
  if (typeid(there) != typeid(Engine)) watched_engine().install_over(there);
  torch::autograd::set_default_engine_stub([]() -> Engine& { return watched_engine(); });
}

}  // namespace reprise::internal
