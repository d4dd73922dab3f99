// What the parts of the simulated accelerator know of its allocator.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace reprise::testing::accelerator {

// The memory is used on this stream, too. Asks the allocator that LibTorch has for the device, which may be another one
// in front of ours.
void record_stream(const c10::DataPtr&, c10::Stream);

}  // namespace reprise::testing::accelerator
