// A kernel on its way to a stream of the simulated accelerator: collects the operands as the kernel sees them, which
// keep nothing of the device alive, and launches it on the current stream.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <string>

#include "accelerator/device_streams.h"

namespace reprise::testing::accelerator {

[[nodiscard]] inline bool on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == type;
}

// The same on memory of its own, which is not LibTorch's: what the device has for itself is in nobody's accounts.
[[nodiscard]] at::Tensor copy_of(const at::Tensor& on_host);
[[nodiscard]] c10::IValue copy_of(const c10::IValue&);

class Launch {
 public:
  Launch(std::string name, c10::Device);

  // The operand for the kernel: the same memory, as a CPU tensor. A single number of the host is read now. Other
  // tensors of the host, and those of other devices, are refused.
  at::Tensor operand(const at::Tensor&, bool written = false);
  // A tensor of the host of any size, read now.
  at::Tensor read_now(const at::Tensor&);
  // The memory of a tensor, wherever it is, as it is when the kernel runs: for copies between devices, and pinned
  // memory.
  at::Tensor memory(const at::Tensor&);
  // The same for arguments of operators: lists of tensors, lists of indices, which may be of the host, devices.
  c10::IValue operand(const c10::IValue&, bool written = false);

  void run(std::function<void()> kernel);
  // Work that is no kernel: takes no time, and is not counted.
  void run_besides(std::function<void()> work);
  void wait();  // of the host

  [[nodiscard]] DeviceStream& stream() const { return stream_; }
  [[nodiscard]] const std::string& name() const { return kernel_.name; }
  [[nodiscard]] c10::Device device() const { return stream_.id.device(); }

 private:
  Kernel kernel_;
  DeviceStream& stream_;
};

}  // namespace reprise::testing::accelerator
