// LibTorch's autograd engine, with our saved tensors and an eye on where backward begins and ends.

#include <torch/csrc/autograd/engine.h>

#include <optional>

#include "torch/automatic.h"
#include "torch/executor.h"
#include "torch/recorder.h"
#include "torch/saved.h"
#include "torch/session_state.h"

namespace reprise {
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
    recording_->in_backward = true;
    if (create_graph) {
      const Arbiter lock;
      recording_->unplannable = "backward was recorded to be differentiated again";
      recording_->observing = false;
      if (recording_->executor) recording_->diverge("backward is to be differentiated again", std::nullopt);
    } else {
      watch_operators(false);
    }
    const bool watched = recording_->observing || recording_->executor;
    recording_->lost_count |= !watched;
    watch_nodes(watched);
  }
  ~InBackward() {
    recording_->in_backward = false;
    recording_->went_back = true;
    watch_nodes(false);
    watch_operators(true);
  }
  InBackward(const InBackward&) = delete;
  InBackward& operator=(const InBackward&) = delete;

 private:
  std::shared_ptr<Recording> recording_;
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
    variable_list gradients = Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
    if (in_backward) {
      in_backward.reset();
      if (recording->pending() == 0) end_period();
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

}  // namespace reprise
