// The simulated accelerator as the device of tensors for which nobody names one.
#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/TensorOptions.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/device_streams.h"

namespace reprise::testing::accelerator {
namespace {

using torch::jit::Stack;

// What an operator that makes a tensor is told about it; nothing: it makes none, or is told by another tensor.
struct Told {
  explicit Told(const c10::FunctionSchema& schema)
      : dtype(schema.argumentIndexWithName("dtype")),
        layout(schema.argumentIndexWithName("layout")),
        device(schema.argumentIndexWithName("device")),
        generator(schema.argumentIndexWithName("generator")) {}

  static bool is_by_tensors(const c10::FunctionSchema& schema) {
    for (const c10::Argument& argument : schema.arguments())
      if (argument.type()->str().find("Tensor") != std::string::npos) return true;
    return false;
  }

  std::optional<int> dtype, layout, device, generator;
};

// Whose numbers it draws is where it is; else this device, unless a kernel asks.
c10::Device device_for(const std::optional<at::Generator>& generator) {
  if (generator && generator->defined()) return generator->device();
  return is_stream_thread() ? c10::Device(c10::DeviceType::CPU) : c10::Device(type, current_device());
}

// In the place of the kernel that chooses a backend by what the operator is told.
void make_there(const c10::OperatorHandle& operation, Stack* stack) {
  const c10::FunctionSchema& schema = operation.schema();
  const Told told(schema);
  const auto argument = [&](int number) -> c10::IValue& {
    return (*stack)[stack->size() - schema.arguments().size() + static_cast<std::size_t>(number)];
  };
  const auto layout = argument(*told.layout).toOptional<at::Layout>();
  c10::IValue& device = argument(*told.device);
  if (device.isNone() && layout.value_or(at::kStrided) == at::kStrided)
    device = device_for(told.generator ? argument(*told.generator).toOptional<at::Generator>() : std::nullopt);
  const auto key = c10::computeDispatchKey(argument(*told.dtype).toOptional<at::ScalarType>(), layout,
                                           device.toOptional<c10::Device>());
  operation.redispatchBoxed(c10::DispatchKeySet(key), stack);
}

// That kernels of LibTorch's are replaced is on purpose.
class Silent final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

void make_default() {
  static std::once_flag once;
  std::call_once(once, [] {
    Silent silent;
    const c10::WarningUtils::WarningHandlerGuard quiet(&silent);
    auto& dispatcher = c10::Dispatcher::singleton();
    static auto& registrations = *new std::vector<c10::RegistrationHandleRAII>;
    for (const auto& name : dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::BackendSelect)) {
      const auto operation = dispatcher.findSchema(name);
      if (!operation || Told::is_by_tensors(operation->schema())) continue;
      const Told told(operation->schema());
      if (!told.dtype || !told.layout || !told.device) continue;
      registrations.push_back(dispatcher.registerImpl(name, c10::DispatchKey::BackendSelect,
                                                      c10::KernelFunction::makeFromBoxedFunction<&make_there>(),
                                                      std::nullopt, nullptr, "accelerator"));
    }
  });
}

}  // namespace reprise::testing::accelerator
