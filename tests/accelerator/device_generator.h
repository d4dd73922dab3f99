// Random numbers of the simulated accelerator. A generator is a seed and an offset; a kernel that draws gets both when
// it is launched, and the offset advances, whatever the kernel does with them later.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <optional>

namespace reprise::testing::accelerator {

const at::Generator& default_generator(c10::DeviceIndex);  // -1: of the current device
at::Generator new_generator(c10::DeviceIndex);

// For a kernel that draws: the seed of a generator of its own. Without a generator it is the current device's.
std::uint64_t next_seed(const std::optional<at::Generator>& = std::nullopt);

}  // namespace reprise::testing::accelerator
