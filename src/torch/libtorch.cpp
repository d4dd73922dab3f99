#include "torch/libtorch.h"

#define XXH_INLINE_ALL
#include <c10/core/CPUAllocator.h>
#include <xxhash.h>

#include <array>

#include "torch/libtorch_versions.h"

namespace reprise::internal::libtorch {

c10::Storage new_storage(std::size_t bytes) {
  c10::Allocator* const allocator = c10::GetCPUAllocator();
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator, true);
}

// Python's registrations give the file and the line of the function.
bool is_python_kernel(const c10::OperatorHandle& handle) {
  return registration_of_kernel(handle).find(".py:") != std::string::npos;
}

RandomState state_of(at::CPUGeneratorImpl& generator) {
  return {generator.engine(), generator.next_float_normal_sample(), generator.next_double_normal_sample()};
}

void restore(at::CPUGeneratorImpl& generator, const RandomState& state) {
  generator.set_engine(state.engine);
  generator.set_next_float_normal_sample(state.next_float);
  generator.set_next_double_normal_sample(state.next_double);
}

std::uint64_t fingerprint(const RandomState& state) {
  const at::mt19937_data_pod engine = state.engine.data();
  // One by one: what lies between members is nobody's.
  const std::array<double, 6> rest{static_cast<double>(engine.left_), static_cast<double>(engine.next_),
                                   state.next_float ? 1.0 : 0.0,      state.next_float.value_or(0.0f),
                                   state.next_double ? 1.0 : 0.0,     state.next_double.value_or(0.0)};
  return XXH3_64bits_withSeed(engine.state_.data(), sizeof engine.state_, XXH3_64bits(rest.data(), sizeof rest));
}

void throw_modified(const Version& now, std::uint32_t expected, at::ScalarType dtype, c10::IntArrayRef sizes) {
  TORCH_CHECK(
      false, "one of the variables needed for gradient computation has been modified by an inplace operation: [CPU",
      c10::toString(dtype), "Type ", sizes, "] is at version ", now.current_version(), "; expected version ", expected,
      " instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
      "torch.autograd.set_detect_anomaly(True, check_nan=False).");
}

}  // namespace reprise::internal::libtorch
