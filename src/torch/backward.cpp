#include "torch/backward.h"

#include <torch/csrc/autograd/engine.h>

#include <optional>

#include "torch/automatic.h"
#include "torch/executor.h"
#include "torch/recorder.h"
#include "torch/saved.h"
#include "torch/session_state.h"
#include "torch/writes.h"

namespace reprise::internal {
namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::variable_list;

// While backward runs on this thread. Operators of backward are not recorded, unless they are to be differentiated
// again: then the callbacks stay. They are removed and not only switched off, because the engine installs the
// thread's state for every node, and that costs more with callbacks that are there.
class InBackward {
 public:
  InBackward(std::shared_ptr<Recording> recording, bool create_graph) : recording_(std::move(recording)) {
    bool watched = false;
    {
      const Arbiter lock;
      recording_->in_backward = true;
      if (create_graph) {
        recording_->unplannable = "backward was recorded to be differentiated again";
        recording_->observing = false;
        if (recording_->executor) recording_->diverge("backward is to be differentiated again", std::nullopt);
      }
      watched = recording_->observing || recording_->executor;
      recording_->lost_count |= !watched;
    }
    if (!create_graph) watch_operators(false);
    watch_nodes(watched);
  }
  ~InBackward() {
    (void)end();
    watch_nodes(false);
    watch_operators(true);
  }
  // Whether the pass left nothing of its own pending, see Recording::end_backward.
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

class WatchedEngine final : public Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (!this_thread().recording) {
      automatic::meet_thread();
      return nullptr;
    }
    return std::make_unique<SavedHook>();
  }

  variable_list execute(const edge_list& roots, const variable_list& inputs, bool keep_graph, bool create_graph,
                        bool accumulate_grad, const edge_list& outputs) override {
    const std::shared_ptr<Recording> recording = this_thread().recording;
    std::optional<InBackward> in_backward;
    if (recording && !recording->in_backward) in_backward.emplace(recording, create_graph);
    variable_list gradients = [&] {
      std::optional<writes::Watch> watch;
      if (!create_graph) watch.emplace();  // else everything is recorded
      return Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    }();
    if (in_backward) {
      const bool complete = in_backward->end();
      in_backward.reset();
      // Without steps of the user's, a graph that the program keeps for ever would be in one endless period.
      if (recording->pending() == 0 || (complete && automatic::is_on())) end_period();
    } else if (!recording) {
      automatic::end_step();
    }
    return gradients;
  }
};

Engine& watched_engine() {
  static auto* const engine = new WatchedEngine;
  return *engine;
}

}  // namespace

void install_engine() {
  torch::autograd::set_default_engine_stub(watched_engine);
}

}  // namespace reprise::internal
