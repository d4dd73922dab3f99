// The benchmarks of training on the simulated accelerator.
#include "accelerator/accelerator.h"
#include "training_device.h"

namespace reprise::benchmarks {
namespace {

[[maybe_unused]] const bool offered_here = [] {
  offer_device("sim", [] {
    testing::accelerator::use(1);
    testing::accelerator::make_default();
    return c10::Device(testing::accelerator::type, 0);
  });
  return true;
}();

}  // namespace
}  // namespace reprise::benchmarks
