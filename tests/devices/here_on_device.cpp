// The tests of tests/torch on the simulated accelerator.
#include <gtest/gtest.h>

#include "accelerator/accelerator.h"
#include "accelerator/device_streams.h"
#include "torch/here.h"

namespace reprise::testing {
namespace {

[[maybe_unused]] const bool taken = [] {
  here_is([] {
    accelerator::use(1);
    accelerator::make_default();
    return c10::Device(accelerator::type, 0);
  });
  return true;
}();

// Kernels run on the host: those that nobody has waited for would find what LibTorch keeps for them destroyed when the
// process ends.
class WaitForKernels : public ::testing::Environment {
  void TearDown() override {
    for (accelerator::DeviceStream* const stream : accelerator::all_streams()) stream->settle();
  }
};
[[maybe_unused]] ::testing::Environment* const waits = ::testing::AddGlobalTestEnvironment(new WaitForKernels);

}  // namespace
}  // namespace reprise::testing
