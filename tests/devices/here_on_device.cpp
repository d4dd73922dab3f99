// The tests of tests/torch on the simulated accelerator.
#include "accelerator/accelerator.h"
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

}  // namespace
}  // namespace reprise::testing
