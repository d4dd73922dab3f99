// Memory of the simulated accelerator: one file, mapped twice. Tensors have the addresses of the mapping without access
// rights, kernels those of the other.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>

namespace reprise::testing::accelerator {

// The addresses that a device has; they have no pages until somebody writes.
struct Addresses {
  char* first = nullptr;
  char* end = nullptr;
};
Addresses addresses_of(c10::DeviceIndex);
// The device that has this address; -1: it is of the host.
c10::DeviceIndex device_at(const void*);
// Gives the pages back to the system.
void drop_pages(char* at, std::size_t bytes);

inline constexpr int poison = 0xCB;  // a large negative number in every type that has one

}  // namespace reprise::testing::accelerator
