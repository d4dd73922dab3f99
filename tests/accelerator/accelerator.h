// A simulated accelerator: LibTorch's PrivateUse1, by the name of "sim", for tests of what only an asynchronous device
// with memory of its own brings about.
//
// - Memory. The host cannot read it: the address of a tensor has no access rights, kernels have a mapping of their own.
//   What is freed, and what is fresh, is poisoned in the order of the stream it belongs to, so that whoever reads too
//   early or too late sees it.
// - Streams. Each is a thread with a queue. Kernels are LibTorch's CPU kernels; they have raw pointers and keep nothing
//   alive. What they throw is thrown by the next wait of the host for the stream.
// - Allocation. A stream-ordered caching allocator as LibTorch's for CUDA, in units of 512 bytes: what is freed is free
//   for its stream at once. A block that another stream was said to use (record_stream) waits until that stream is
//   through with what was launched on it before the free; as there, it is looked for only when somebody allocates, and
//   a DataPtr with somebody else's deleter is not recognised. Every allocation asks c10::GetAllocator.
// - Time. Every stream has a clock, which kernels advance by the durations that `durations` says, else by the
//   CPU time that they took. Events have its time, so elapsedTime is exact if durations are given, however busy the
//   machine is. Waiting for an event advances the clock to its time; so does the host's waiting that of kernels
//   launched later.
// - Random numbers. A generator is a seed and an offset, which is a multiple of 4 and advances when a kernel that draws
//   is launched.
//
// Operators run as they do elsewhere, on operands of one device; host tensors are accepted where CUDA accepts them, as
// single numbers and as indices, and are read when a kernel is launched. An operator that makes tensors is tried on
// copies before the first call with arguments like these, and the host waits for that; those whose results have shapes
// that depend on contents (nonzero, masked_select) wait always, and so do `item` and copies to memory that is not
// pinned.
//
// Not there: sparse tensors, quantized tensors, autocast, graph capture, peer access without copies, `out=` tensors of
// a wrong size that is not zero, operators that draw without an argument for a generator (but for native_dropout). What
// kernels need for themselves is host memory, which LibTorch's CPU allocator counts.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace reprise::testing::accelerator {

inline constexpr auto type = c10::DeviceType::PrivateUse1;
inline constexpr int most_devices = 8;

// What young accelerators are like.
struct Like {
  bool draws_on_cpu = false;      // operators that draw run by LibTorch's fallback to the CPU, with the CPU's generator
  bool exact_statistics = false;  // memory counts in bytes, not in units of 512
};

// Registers so many devices with LibTorch, for the rest of the process. To be called before anything else here; further
// calls have no effect.
void use(int devices = 1, Like = {});

// From now on tensors for which nobody names a device are made on this one, on all threads: a program that was written
// for the CPU trains there. What LibTorch makes of memory of the host stays there (torch::tensor, from_blob).
void make_default();

// Waits for all streams; throws the first thing that a kernel threw.
void synchronize();

// ---- memory --------------------------------------------------------------------------------------------------------

struct Memory {
  std::int64_t live = 0;                                           // handed out
  std::int64_t waiting = 0;                                        // freed, but kernels of another stream may use it
  std::int64_t reserved = 0;                                       // live, waiting and cached
  std::int64_t live_peak = 0, active_peak = 0, reserved_peak = 0;  // active: live and waiting
};
Memory memory(c10::DeviceIndex = 0);
void mark_peak(c10::DeviceIndex = 0);  // peaks begin anew
void empty_cache();

// What the device has, at most: `reserved` stays within it.
void capacity(std::int64_t bytes, c10::DeviceIndex = 0);
inline constexpr std::int64_t unlimited = std::int64_t{1} << 34;
// Memory is taken from the device in segments of at least so many bytes, which are split: an allocation may be refused
// although the bytes are there, in pieces. Zero, as it is at first: every block is a segment, and never split.
void segments_of(std::int64_t bytes, c10::DeviceIndex = 0);

// Where kernels see what is at this address of the device: for tests that look, when the streams are idle.
void* kernel_address(const void* device_address);

// ---- time ----------------------------------------------------------------------------------------------------------

struct Kernel {
  std::string name;        // "mm", "add.out", "_copy_from"
  std::int64_t bytes = 0;  // of its operands and of results that are known when it is launched
};
// What a kernel takes on its stream's clock. Asked when it is launched, on that thread. Empty: what it really takes.
using Durations = std::function<std::chrono::nanoseconds(const Kernel&)>;
void durations(Durations);

// Every kernel really begins so much later, so that the device is behind the host. Not on any clock.
void slow_down(std::chrono::microseconds);

// Nothing more begins on this stream while this lives. Who waits for it meanwhile gets an error.
class Held {
 public:
  explicit Held(c10::Stream);
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  const c10::Stream stream_;
};

// ---- faults --------------------------------------------------------------------------------------------------------

// So many allocations from now one is refused, as if the device were full; -1: none.
void fail_allocation_after(std::int64_t allocations);
// So many kernels from now one fails; -1: none.
void fail_kernel_after(std::int64_t kernels);
// Finishes what was launched on it; who launches more gets an error.
void destroy(c10::Stream);

// ---- what happened -------------------------------------------------------------------------------------------------

struct Counts {
  std::int64_t allocations = 0, kernels = 0;
  std::int64_t waits = 0;  // of the host for a stream or an event
  std::map<std::string, std::int64_t> kernels_by_name;
  std::map<std::string, std::int64_t> waits_by_name;  // the operator, or the function, that waited
};
Counts counts();  // since the beginning

}  // namespace reprise::testing::accelerator
