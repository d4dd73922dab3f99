// Training on LibTorch's CUDA side without a GPU: what is allocated, drawn and launched. Values are nobody's.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "reprise/torch/session.h"

namespace reprise::testing {

[[nodiscard]] inline c10::Device cuda() {
  return {c10::DeviceType::CUDA, 0};
}

// What LibTorch's own allocator says.
struct CudaMemory {
  Bytes allocated = 0, allocated_peak = 0;
  Bytes reserved_peak = 0;  // from the driver
  Bytes waiting = 0;        // freed, but a stream may use it
};
[[nodiscard]] CudaMemory cuda_memory();
void mark_cuda_peaks();
// What is cached goes back to the driver.
void empty_cuda_cache();

struct CudaOutcome {
  std::vector<std::uint64_t> offsets;  // of the device's generator, after each step
  CudaMemory memory;                   // peaks of all steps but the first, which makes the optimizer's state
  std::uint64_t launches = 0;          // kernels of the last step
};

// A language model of six blocks with attention and dropout, and Adam: some 700 MiB. Without a session: plainly.
[[nodiscard]] CudaOutcome train_on_cuda(Session*, const std::function<void(int step)>& after_step = {});

}  // namespace reprise::testing
