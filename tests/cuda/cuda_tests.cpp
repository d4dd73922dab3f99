// The program of these tests.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int count, char** arguments) {
  setenv("DISABLE_ADDMM_CUDA_LT", "1", 1);  // the stub of cublasLt has no algorithm
  ::testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
