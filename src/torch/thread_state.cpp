#include "torch/thread_state.h"

namespace reprise {
namespace {

// Never destroyed, only emptied when the thread ends: objects of the thread that are destroyed later (the engine's
// queue with the rest of a graph) still look at it.
union Place {
  ThreadState state;
  Place() : state() {}
  ~Place() {}
};
thread_local Place place;

struct AtTheEnd {
  ~AtTheEnd() { place.state = ThreadState(); }
};

}  // namespace

ThreadState& this_thread() {
  static thread_local const AtTheEnd at_the_end;
  (void)at_the_end;
  return place.state;
}

}  // namespace reprise
