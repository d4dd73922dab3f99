// What the hooks of the simulated accelerator share with its operators.
#pragma once

#include <c10/core/Storage.h>

#include <cstddef>

namespace reprise::testing::accelerator {

// Gives the storage other memory of so many bytes, with the contents that fit.
void resize_storage(const c10::Storage&, std::size_t bytes);

}  // namespace reprise::testing::accelerator
