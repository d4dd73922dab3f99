// The program of these tests: there are two devices from the start.
#include <gtest/gtest.h>

#include "accelerator/accelerator.h"
#include "devices/device_training.h"

int main(int count, char** arguments) {
  ::testing::InitGoogleTest(&count, arguments);
  (void)reprise::testing::device();
  const int result = RUN_ALL_TESTS();
  reprise::testing::accelerator::synchronize();
  return result;
}
