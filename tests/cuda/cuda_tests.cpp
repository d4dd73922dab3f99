// The program of these tests.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "torch/libtorch/libtorch_versions.h"

int main(int count, char** arguments) {
  if constexpr (!REPRISE_CUDA_ALLOCATOR_IS_KNOWN) {
    std::puts("skipped: cuda, because Reprise has no allocator for the CUDA of LibTorch " TORCH_VERSION);
    return 77;  // as usual
  }
  setenv("DISABLE_ADDMM_CUDA_LT", "1", 1);  // the stub of cublasLt has no algorithm
  ::testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
