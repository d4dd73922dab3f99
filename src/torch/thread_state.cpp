#include "torch/thread_state.h"

#include "torch/of_thread.h"

namespace reprise::internal {

ThreadState& this_thread() {
  return of_thread<ThreadState>();
}

}  // namespace reprise::internal
