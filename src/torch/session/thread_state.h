// What a thread with an open step, or inside a checkpoint region, carries along; and the periods on it.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "torch/session/source.h"

namespace reprise::internal {

class SessionState;

// Whether a step still looks for the place where the parameters are, see place_finder.h.
enum class SeeksPlace : std::uint8_t {
  no,             // it has its places
  from_start,     // and no operator has been passed over
  in_the_middle,  // and some have
  second,         // it has found one, and looks whether there is another
};

struct ThreadState {
  SessionState* step = nullptr;  // whose step is open
  double step_start = 0;         // on the clock of the thread
  SeeksPlace seeks_place = SeeksPlace::no;
  std::shared_ptr<Source> source;        // of recordings; none: nothing is recorded
  std::shared_ptr<Recording> recording;  // none until the first operator of a period
  bool met_inside = false;               // it was met inside of an operator, which has perhaps not ended yet
  bool in_compiled_function = false;     // what it is inside of is only the frame around compiled code, see compiled.h
  bool in_compiled_graph = false;        // a graph runs as one operator, which may yet turn out not to be replayable
  bool in_traced = false;                // what it is inside of becomes a node of a graph that the program makes
  std::optional<at::CallbackHandle> operators, scopes, scripts, nodes;  // callbacks that are there
  void (*period_ended)() = nullptr;                                     // told after a period of this thread has ended
};

[[nodiscard]] ThreadState& this_thread();

// Whether its step has no place yet, and so nothing to record. A region of a checkpoint has places of its own.
[[nodiscard]] bool has_no_place(const ThreadState&);

// A new period begins on this thread, if the present one is over; both without effect if nothing is recorded. Not under
// the arbiter's lock.
void begin_period_if_over();
void end_period();
// The same without telling `period_ended`. False: there was no recording, or no backward, and so nothing to remember.
bool complete_period();

}  // namespace reprise::internal
