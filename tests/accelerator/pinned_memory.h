// Pinned memory of the simulated accelerator: memory of the host that kernels read and write while the host goes on.
#pragma once

#include <c10/core/Allocator.h>

#include "accelerator/device_streams.h"

namespace reprise::testing::accelerator {

c10::Allocator* pinned_allocator();

[[nodiscard]] bool is_pinned(const void*);
// It is given back only when the stream is done with what was launched so far.
void pinned_used_by(const void*, DeviceStream&);

}  // namespace reprise::testing::accelerator
