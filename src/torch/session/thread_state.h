// What a thread with an open step, or inside a checkpoint region, carries along; and the passes on it.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "torch/session/recording_owner.h"

namespace reprise::internal {

class SessionState;

// Whether a step still looks for the device where the parameters are, see device_inference.h.
enum class InfersDevice : std::uint8_t {
  no,             // it has its devices
  from_start,     // and no operator has been passed over
  in_the_middle,  // and some have
  second,         // it has found one, and looks whether there is another
};

struct ThreadState {
  SessionState* step = nullptr;  // whose step is open
  double step_start = 0;         // on the clock of the thread
  InfersDevice infers_device = InfersDevice::no;
  std::shared_ptr<RecordingOwner> source;  // of recordings; none: nothing is recorded
  std::shared_ptr<Recording> recording;    // none until the first operator of a pass
  bool met_inside = false;                 // it was met inside of an operator, which has perhaps not ended yet
  bool in_compiled_function = false;  // what it is inside of is only the frame around compiled code, see compiled.h
  bool in_compiled_graph = false;     // a graph runs as one operator, which may yet turn out not to be replayable
  bool in_traced = false;             // what it is inside of becomes a node of a graph that the program makes
  std::optional<at::CallbackHandle> operators, scopes, executables, nodes;  // callbacks that are there
  void (*pass_ended)() = nullptr;  // called after a pass of this thread has ended
};

[[nodiscard]] ThreadState& this_thread();

// Whether its step has no device yet, and so nothing to record. A region of a checkpoint has devices of its own.
[[nodiscard]] bool has_no_device(const ThreadState&);

// A new pass begins on this thread, if the present one is over; both without effect if nothing is recorded. Not under
// the arbiter's lock.
void begin_pass_if_over();
void end_pass();
// The same without telling `pass_ended`. False: there was no recording, or no backward, and so nothing to remember.
bool complete_pass();

}  // namespace reprise::internal
