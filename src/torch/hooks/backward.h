// LibTorch's autograd engine, with our saved tensors and an eye on where backward begins and ends.
#pragma once

#include <memory>

namespace reprise::internal {

// Installs an engine of ours that delegates to the one that is there: LibTorch's, or Python's. Called when the library
// is loaded.
void install_engine();

// One run of the engine on this thread, from before its first node to after its last. Our engine makes one for each;
// whoever runs the engine behind it directly, as Python does, makes it around the run.
class BackwardRun {
 public:
  explicit BackwardRun(bool create_graph);
  ~BackwardRun();
  BackwardRun(const BackwardRun&) = delete;
  BackwardRun& operator=(const BackwardRun&) = delete;
  // Ends the pass if it is over: the run came to its end, without an error.
  void succeeded();

 private:
  struct Inside;
  const std::unique_ptr<Inside> inside_;
};

}  // namespace reprise::internal
