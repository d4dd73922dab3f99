#include "torch/libtorch.h"

#include <c10/core/CPUAllocator.h>

#include <mutex>

namespace reprise::libtorch {

c10::Storage new_storage(std::size_t bytes) {
  c10::Allocator* const allocator = c10::GetCPUAllocator();
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator, true);
}

RandomState state_of(at::CPUGeneratorImpl& generator) {
  const std::scoped_lock lock(generator.mutex_);
  return {generator.engine(), generator.next_float_normal_sample(), generator.next_double_normal_sample()};
}

void restore(at::CPUGeneratorImpl& generator, const RandomState& state) {
  const std::scoped_lock lock(generator.mutex_);
  generator.set_engine(state.engine);
  generator.set_next_float_normal_sample(state.next_float);
  generator.set_next_double_normal_sample(state.next_double);
}

void throw_modified(const Version& now, std::uint32_t expected, at::ScalarType dtype, c10::IntArrayRef sizes) {
  TORCH_CHECK(
      false, "one of the variables needed for gradient computation has been modified by an inplace operation: [CPU",
      c10::toString(dtype), "Type ", sizes, "] is at version ", now.current_version(), "; expected version ", expected,
      " instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
      "torch.autograd.set_detect_anomaly(True, check_nan=False).");
}

}  // namespace reprise::libtorch
