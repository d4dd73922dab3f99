#include "torch/memory/cuda_allocator.h"

#include "torch/libtorch/libtorch_versions.h"

// REPRISE_CUDA: LibTorch has CUDA, and CUDA's headers were found.
#if defined(REPRISE_CUDA) && REPRISE_CUDA_ALLOCATOR_IS_KNOWN

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

// Inline functions of LibTorch's class ask for these, and are never called. The third has another name from 2.14 on.
asm(".weak cudaMemGetInfo\n"
    ".weak cudaGetLastError\n"
    ".weak _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb\n"
    ".weak _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jbPNS0_19CUDAErrorLogCaptureE\n"
    ".weak _ZN3c104cuda19CUDAErrorLogCaptureC1Ev");

namespace reprise::internal {
namespace {

namespace cca = c10::cuda::CUDACachingAllocator;
using c10::DeviceIndex;
using c10::MempoolId_t;
using std::size_t;

class CountedCuda;

// What LibTorch asks. Memory is what CountedCuda counts; everything else is the one's below.
class DelegatingCudaAllocator final : public cca::CUDAAllocator {
 public:
  DelegatingCudaAllocator(CountedCuda& counted, CUDAAllocator& below) : counted_(counted), below_(below) {}

  // ---- memory ----
  c10::DataPtr allocate(size_t) override;
  c10::DataPtr allocateWithAddress(size_t, void*) override;
  c10::DeleterFnPtr raw_deleter() const override { return device_headers::deleter(); }
  void* raw_alloc(size_t n) override { return allocate(n).release_context(); }
  void* raw_alloc_with_stream(size_t, cudaStream_t) override;
  void raw_delete(void*) override;
  void recordStream(const c10::DataPtr&, c10::cuda::CUDAStream) override;
  using CUDAAllocator::recordStream;

  // ---- how much there is: who asks makes its own memory as large ----
  void cacheInfo(DeviceIndex, size_t* largest) override;
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex) override;

  // ---- graphs ----
  void beginAllocateToPool(DeviceIndex d, MempoolId_t pool, std::function<bool(cudaStream_t)> which) override {
    below_.beginAllocateToPool(d, pool, std::move(which));
  }
  void endAllocateToPool(DeviceIndex d, MempoolId_t pool) override { below_.endAllocateToPool(d, pool); }
  void markCaptureBegin(DeviceIndex d) override { below_.markCaptureBegin(d); }
  void markCaptureEnd(DeviceIndex d) override { below_.markCaptureEnd(d); }
  void releasePool(DeviceIndex d, MempoolId_t pool) override { below_.releasePool(d, pool); }
  int getPoolUseCount(DeviceIndex d, MempoolId_t pool) override { return below_.getPoolUseCount(d, pool); }
  void createOrIncrefPool(DeviceIndex d, MempoolId_t pool, std::shared_ptr<CUDAAllocator> own) override {
    below_.createOrIncrefPool(d, pool, std::move(own));
  }
  void setUseOnOOM(DeviceIndex d, MempoolId_t pool, bool use) override { below_.setUseOnOOM(d, pool, use); }
  void setNoSplit(DeviceIndex d, MempoolId_t pool) override { below_.setNoSplit(d, pool); }
  bool checkPoolLiveAllocations(DeviceIndex d, MempoolId_t pool, const std::unordered_set<void*>& expected) override {
    return below_.checkPoolLiveAllocations(d, pool, expected);
  }
  std::shared_ptr<cca::AllocatorState> getCheckpointState(DeviceIndex d, MempoolId_t pool) override {
    return below_.getCheckpointState(d, pool);
  }
  cca::CheckpointDelta setCheckpointPoolState(DeviceIndex, std::shared_ptr<cca::AllocatorState>) override;

  // ---- passed on ----
  void init(int devices) override { below_.init(devices); }
  bool initialized() override { return below_.initialized(); }
  std::string name() override { return below_.name(); }  // others compare it
  void enable(bool on) override { below_.enable(on); }
  bool isEnabled() const override { return below_.isEnabled(); }
  void emptyCache(MempoolId_t pool) override { below_.emptyCache(pool); }
  double getMemoryFraction(DeviceIndex d) override { return below_.getMemoryFraction(d); }
  void setMemoryFraction(double fraction, DeviceIndex d) override { below_.setMemoryFraction(fraction, d); }
  std::vector<cca::StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex d) override {
    return below_.getExpandableSegmentSizes(d);
  }
  void* getBaseAllocation(void* address, size_t* bytes) override { return below_.getBaseAllocation(address, bytes); }
  void copy_data(void* to, const void* from, size_t n) const override { below_.copy_data(to, from, n); }
  cudaError_t memcpyAsync(void* to, int there, const void* from, int here, size_t n, cudaStream_t stream,
                          bool peers) override {
    return below_.memcpyAsync(to, there, from, here, n, stream, peers);
  }
  void enablePeerAccess(DeviceIndex from, DeviceIndex to) override { below_.enablePeerAccess(from, to); }
  cca::ShareableHandle shareIpcHandle(void* address) override { return below_.shareIpcHandle(address); }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override { return below_.getIpcDevPtr(std::move(handle)); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex d) override { return below_.getDeviceStats(d); }
  void resetAccumulatedStats(DeviceIndex d) override { below_.resetAccumulatedStats(d); }
  void resetPeakStats(DeviceIndex d) override { below_.resetPeakStats(d); }
  cca::SnapshotInfo snapshot(MempoolId_t pool, bool traces) override { return below_.snapshot(pool, traces); }
  bool isHistoryEnabled() override { return below_.isHistoryEnabled(); }
  void recordHistory(bool on, cca::CreateContextFn context, size_t entries, cca::RecordContext when, bool clear,
                     const std::vector<std::string>& skipped) override {
    below_.recordHistory(on, context, entries, when, clear, skipped);
  }
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* address) override {
    return below_.getContextForPointer(address);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& entry) override {
    below_.recordAnnotation(entry);
  }
  void pushCompileContext(std::string& entry) override { below_.pushCompileContext(entry); }
  void popCompileContext() override { below_.popCompileContext(); }
  void setUserMetadata(const std::string& entry) override { below_.setUserMetadata(entry); }
  std::string getUserMetadata() override { return below_.getUserMetadata(); }
#if REPRISE_CUDA_ALLOCATOR_ANNOTATES
  bool supportsUserMetadata() override {
    return below_.supportsUserMetadata();
  }
  void annotateMemory(const void* address, const std::string& entry) override {
    below_.annotateMemory(address, entry);
  }
#endif
  void attachOutOfMemoryObserver(cca::OutOfMemoryObserver observer) override {
    below_.attachOutOfMemoryObserver(std::move(observer));
  }
  void attachOomRejectionObserver(cca::OomRejectionObserver observer) override {
    below_.attachOomRejectionObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(cca::AllocatorTraceTracker tracker) override {
    below_.attachAllocatorTraceTracker(std::move(tracker));
  }

 private:
  CountedCuda& counted_;
  CUDAAllocator& below_;
};

class CountedCuda final : public CountedAllocator {
 public:
  CountedCuda(std::atomic<cca::CUDAAllocator*>& asked, size_t devices)
      : CountedAllocator(*asked.load(), c10::DeviceType::CUDA, devices),
        asked_(asked),
        below_(*asked.load()),
        front_(*this, below_) {}

  void install() {
    constexpr std::uint8_t priority = 100;  // the present one's is lower
    find_unit();
    asked_.store(&front_);
    c10::SetAllocator(c10::DeviceType::CUDA, &front_, priority);
    try {
      expect_to_be_asked();
    } catch (...) {
      asked_.store(&below_);
      c10::SetAllocator(c10::DeviceType::CUDA, &below_, priority);
      throw;
    }
  }
  [[nodiscard]] bool is_installed() const override {
    return asked_.load() == &front_ && c10::GetAllocator(c10::DeviceType::CUDA) == &front_;
  }

  void begin_steps(const Arbiter&) override;
  void end_steps(const Arbiter&) override;

  // A block of more than a MiB that is larger than what is wanted, by no more than that, is not split and counts as a
  // whole: the statistics of the allocator below say so. What other threads allocate at that moment may be taken for
  // it.
  [[nodiscard]] c10::DataPtr allocate_with_rest(size_t n, c10::function_ref<c10::DataPtr()> ask) {
    constexpr size_t most_rest = 1 << 20;
    if (n <= most_rest) return allocate(n, [&] { return Given{ask()}; });
    const DeviceIndex here = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice().index();
    return allocate(n, [&] {
      const Bytes before = handed_out(here);
      c10::DataPtr memory = ask();
      return Given{std::move(memory), std::min(handed_out(here) - before, static_cast<Bytes>(n + most_rest))};
    });
  }
  // What the budget leaves; the most there can be if there is none.
  [[nodiscard]] size_t room(DeviceIndex d) {
    const Meter& of_device = meter(d);
    if (of_device.limit() == meter::unlimited) return std::numeric_limits<size_t>::max();
    return static_cast<size_t>(std::max<Bytes>(0, of_device.ceiling() - of_device.live()));
  }

 private:
  std::atomic<cca::CUDAAllocator*>& asked_;  // LibTorch's variable
  cca::CUDAAllocator& below_;
  DelegatingCudaAllocator front_;
  int open_ = 0;  // devices with open steps; under the arbiter's lock, as what follows
  bool deterministic_before_ = false, benchmark_before_ = false;
};

// ---- memory --------------------------------------------------------------------------------------------------------

c10::DataPtr DelegatingCudaAllocator::allocate(size_t n) {
  return counted_.allocate_with_rest(n, [&] { return below_.allocate(n); });
}

c10::DataPtr DelegatingCudaAllocator::allocateWithAddress(size_t n, void* address) {
  return counted_.allocate_with_rest(n, [&] { return below_.allocateWithAddress(n, address); });
}

void* DelegatingCudaAllocator::raw_alloc_with_stream(size_t n, cudaStream_t stream) {
  const c10::Device here = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice();
  const auto ask = [&] {
    void* const address = below_.raw_alloc_with_stream(n, stream);
    return c10::DataPtr(address, address, below_.raw_deleter(), here);
  };
  return counted_.allocate_with_rest(n, ask).release_context();
}

void DelegatingCudaAllocator::raw_delete(void* address) {
  if (device_headers::find(address)) return device_headers::deleter()(address);
  below_.raw_delete(address);
}

void DelegatingCudaAllocator::recordStream(const c10::DataPtr& memory, c10::cuda::CUDAStream stream) {
  counted_.recordStream(memory, stream.unwrap());
}

void DelegatingCudaAllocator::cacheInfo(DeviceIndex d, size_t* largest) {
  below_.cacheInfo(d, largest);
  *largest = std::min(*largest, counted_.room(d));
}

std::pair<size_t, size_t> DelegatingCudaAllocator::getMemoryInfo(DeviceIndex d) {
  const auto [free, total] = below_.getMemoryInfo(d);
  return {std::min(free, counted_.room(d)), total};
}

cca::CheckpointDelta DelegatingCudaAllocator::setCheckpointPoolState(DeviceIndex d,
                                                                     std::shared_ptr<cca::AllocatorState> state) {
  cca::CheckpointDelta delta = below_.setCheckpointPoolState(d, std::move(state));
  for (void* const address : delta.ptrs_freed) device_headers::lose(address);
  return delta;
}

// ---- steps ---------------------------------------------------------------------------------------------------------

void CountedCuda::begin_steps(const Arbiter&) {
  if (open_++ > 0) return;
  at::Context& context = at::globalContext();
  deterministic_before_ = context.deterministicCuDNN();
  benchmark_before_ = context.benchmarkCuDNN();
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
}

void CountedCuda::end_steps(const Arbiter&) {
  if (--open_ > 0) return;
  at::globalContext().setDeterministicCuDNN(deterministic_before_);
  at::globalContext().setBenchmarkCuDNN(benchmark_before_);
}

// ---- finding it ----------------------------------------------------------------------------------------------------

// The variable by which LibTorch asks, c10::cuda::CUDACachingAllocator::allocator. Python loads the library so that
// others do not see its names.
std::atomic<cca::CUDAAllocator*>* find_asked() {
  constexpr const char* name = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";
  void* found = dlsym(RTLD_DEFAULT, name);
  if (!found) {
    if (void* const library = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_NOLOAD)) found = dlsym(library, name);
  }
  return static_cast<std::atomic<cca::CUDAAllocator*>*>(found);
}

}  // namespace

CountedAllocator& install_on_cuda() {
  constexpr auto type = c10::DeviceType::CUDA;
  auto* const asked = find_asked();
  if (!asked || !asked->load()) {
    CountedAllocator::refuse(type, "the program has not loaded LibTorch's part for it: link it with libtorch_cuda.so");
  }
  const size_t devices = CountedAllocator::count_devices(type);
  try {
    at::globalContext().lazyInitDevice(type);
  } catch (const c10::Error& error) {
    CountedAllocator::refuse(type, std::string("LibTorch cannot use it: ") + error.what_without_backtrace());
  }
  auto& made = *new CountedCuda(*asked, devices);  // never destroyed: LibTorch has it from now on
  made.install();
  return made;
}

}  // namespace reprise::internal

#else

namespace reprise::internal {

CountedAllocator& install_on_cuda() {
#if defined(REPRISE_CUDA)
  constexpr const char* why = "the allocator of this version of LibTorch is none that this Reprise knows";
#elif defined(REPRISE_NO_CUDA_HEADERS)
  constexpr const char* why = "this Reprise was built without the headers of CUDA's runtime: docs/devices.md has more";
#else
  constexpr const char* why = "the LibTorch that this Reprise was built for has none";
#endif
  CountedAllocator::refuse(c10::DeviceType::CUDA, why);
}

}  // namespace reprise::internal

#endif
