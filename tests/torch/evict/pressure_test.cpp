// Pressure: in which order what values hold is freed.
#include "torch/evict/pressure.h"

#include <gtest/gtest.h>

namespace reprise::testing {
using namespace internal;
namespace {

TEST(Pressure, FreesWhatBackwardCanDoWithoutBeforeItUsesTheReserveAndWhatIsHardToRecomputeAfterThat) {
  const std::vector<std::string_view> steps{
      "finish puts",
      "release large origins",
      "evict the cheapest value",
      "reconsider skipped values",
      "offload an irreplaceable value",
      "offload a gradient",
      "use the reserve",
      "release fetched copies",
      "evict the largest value",
      "drop the largest packed copy",
      "release all origins",
  };
  EXPECT_EQ(steps_of_pressure(), steps);
}

}  // namespace
}  // namespace reprise::testing
