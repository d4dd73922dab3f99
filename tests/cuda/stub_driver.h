// LibTorch's CUDA side without a GPU: what the stub libraries (stub_libraries.py, stub_runtime.cpp) let tests set and
// see. Operators dispatch, allocate from LibTorch's own caching allocator, advance its generators and launch kernels as
// on a GPU, and nothing computes: what is copied from the device is zero.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// What the device has; cudaMalloc fails beyond it. 16 GiB at first.
void stub_set_memory(std::size_t bytes);
// What was taken from it and not given back.
std::size_t stub_memory_in_use();
// Kernels so far. By the device's clock each takes ten microseconds.
std::uint64_t stub_launches();
// Pinned memory of the host that was taken from the driver and not given back, and the most of it since it was last
// marked.
struct StubPinned {
  std::size_t bytes, peak;
};
StubPinned stub_pinned();
void stub_mark_pinned();
// Copies between the device and pinned memory so far; of them, those on another stream than the default one.
std::uint64_t stub_pinned_copies();
std::uint64_t stub_pinned_copies_beside();
// While it is on, the device does not come to any event.
void stub_hold_events(bool);
}
