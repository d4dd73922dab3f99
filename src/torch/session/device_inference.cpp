#include "torch/session/device_inference.h"

#include <utility>

#include "torch/memory/arbiter.h"
#include "torch/session/session_state.h"

namespace reprise::internal {
namespace {

bool is_parameter(const c10::IValue& argument) {
  if (!argument.isTensor() || !argument.toTensor().defined()) return false;
  const at::Tensor& tensor = argument.toTensor();
  return tensor.requires_grad() && tensor.is_leaf() && !tensor.is_meta();
}

template <class Meet>
void meet_parameters(c10::ArrayRef<const c10::IValue> arguments, const Meet& meet) {
  for (const c10::IValue& argument : arguments) {
    if (is_parameter(argument)) meet(argument.toTensor().device());
    if (!argument.isTensorList()) continue;
    for (const c10::IValue& element : argument.toListRef()) {
      if (is_parameter(element)) meet(element.toTensor().device());
    }
  }
}

}  // namespace

void find_device(ThreadState& here, c10::ArrayRef<const c10::IValue> arguments) {
  SessionState& session = *here.step;
  meet_parameters(arguments, [&](c10::Device device) { session.meet_parameter(device); });
  if (here.infers_device == InfersDevice::second || !session.has_device()) return;
  const bool in_the_middle = std::exchange(here.infers_device, InfersDevice::second) == InfersDevice::in_the_middle;
  if (in_the_middle && here.source.get() == here.step) {  // else a region of a checkpoint records
    const Arbiter lock;
    here.recording = session.begin_pass_in_the_middle();
  }
}

}  // namespace reprise::internal
