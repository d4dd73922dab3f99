// What is not empty in the stub of CUDA's runtime: memory, streams, events and graphs of one device that does nothing.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "stub_driver.h"

struct CUstream_st {
  unsigned long long capture = 0;  // its number; 0: none
};
struct CUevent_st {
  std::uint64_t launches = 0;  // when it was recorded
};

namespace {

std::mutex mutex;
std::map<void*, std::size_t> blocks;
std::map<void*, std::size_t> pinned;
StubPinned pinned_bytes = {};
std::size_t memory = std::size_t{16} << 30, in_use = 0;
std::atomic<std::uint64_t> launches{0}, pinned_copies{0}, pinned_copies_beside{0};
std::atomic<bool> held{false};
unsigned long long captures = 0;
thread_local int device = 0;

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  return stream && stream->capture != 0 ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
}

bool is_in(const std::map<void*, std::size_t>& some, const void* address) {
  const std::scoped_lock lock(mutex);
  const auto after = some.upper_bound(const_cast<void*>(address));
  if (after == some.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return address < static_cast<char*>(begin) + bytes;
}
bool is_of_device(const void* address) {
  return is_in(blocks, address);
}
bool is_pinned(const void* address) {
  return is_in(pinned, address);
}

// Nothing was computed: what the host gets is zero.
cudaError_t copy(void* to, std::size_t bytes) {
  if (!is_of_device(to)) std::memset(to, 0, bytes);
  return cudaSuccess;
}

}  // namespace

extern "C" {

void stub_set_memory(std::size_t bytes) {
  memory = bytes;
}
std::size_t stub_memory_in_use() {
  return in_use;
}
std::uint64_t stub_launches() {
  return launches;
}
StubPinned stub_pinned() {
  const std::scoped_lock lock(mutex);
  return pinned_bytes;
}
void stub_mark_pinned() {
  const std::scoped_lock lock(mutex);
  pinned_bytes.peak = pinned_bytes.bytes;
}
std::uint64_t stub_pinned_copies() {
  return pinned_copies;
}
std::uint64_t stub_pinned_copies_beside() {
  return pinned_copies_beside;
}
void stub_hold_events(bool on) {
  held = on;
}

// ---- the device ----

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* current) {
  *current = device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int chosen) {
  device = chosen;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "stub");
  properties->major = 8;
  properties->totalGlobalMem = memory;
  properties->multiProcessorCount = 108;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 163 << 10;
  properties->sharedMemPerMultiprocessor = 164 << 10;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->l2CacheSize = 40 << 20;
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = i == 2 ? 64 : 1024;
    properties->maxGridSize[i] = i == 0 ? 2147483647 : 65535;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMultiProcessorCount: *value = 108; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 8; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    default: *value = 1;
  }
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t) {
  return "an error of the stub";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stub";
}

// ---- memory, which nobody may read ----

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = memory - in_use;
  *total = memory;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  const std::scoped_lock lock(mutex);
  if (bytes > memory - in_use) return cudaErrorMemoryAllocation;
  *address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*address == MAP_FAILED) return cudaErrorMemoryAllocation;
  blocks[*address] = bytes;
  in_use += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  if (!address) return cudaSuccess;
  const std::scoped_lock lock(mutex);
  const auto block = blocks.find(address);
  if (block == blocks.end()) return cudaErrorInvalidValue;
  munmap(address, block->second);
  in_use -= block->second;
  blocks.erase(block);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  *address = std::malloc(bytes);
  if (!*address) return cudaErrorMemoryAllocation;
  const std::scoped_lock lock(mutex);
  pinned[*address] = bytes;
  pinned_bytes.bytes += bytes;
  pinned_bytes.peak = std::max(pinned_bytes.peak, pinned_bytes.bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* address) {
  if (!address) return cudaSuccess;
  const std::scoped_lock lock(mutex);
  const auto block = pinned.find(address);
  if (block == pinned.end()) return cudaErrorInvalidValue;
  pinned_bytes.bytes -= block->second;
  pinned.erase(block);
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  *attributes = {};
  attributes->type = is_of_device(address) ? cudaMemoryTypeDevice
                     : is_pinned(address)  ? cudaMemoryTypeHost
                                           : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void*, std::size_t bytes, cudaMemcpyKind) {
  return copy(to, bytes);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (is_pinned(to) ? is_of_device(from) : is_pinned(from) && is_of_device(to)) {
    ++pinned_copies;
    if (stream) ++pinned_copies_beside;
  }
  return copy(to, bytes);
}

// ---- streams and events ----

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  event->launches = launches;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  return held ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = 0.01f * static_cast<float>(to->launches - from->launches);
  return cudaSuccess;
}

// ---- kernels ----

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t) {
  ++launches;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) {
  ++launches;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel() {
  ++launches;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* count, const void*, int, std::size_t) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, const void*, int, std::size_t,
                                                                   unsigned) {
  *count = 1;
  return cudaSuccess;
}
void** __cudaRegisterFatBinary() {
  static void* handle = nullptr;
  return &handle;
}

// ---- graphs ----

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = status_of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count) {
  *status = status_of(stream);
  if (id && *status == cudaStreamCaptureStatusActive) *id = stream->capture;
  if (graph) *graph = nullptr;
  if (dependencies) *dependencies = nullptr;
  if (edges) *edges = nullptr;
  if (count) *count = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream) return cudaErrorStreamCaptureUnsupported;
  stream->capture = ++captures;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  static char any;  // LibTorch takes none for a capture that went wrong
  stream->capture = 0;
  *graph = reinterpret_cast<cudaGraph_t>(&any);
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, std::size_t* count) {
  *count = 1;
  return cudaSuccess;
}
}
