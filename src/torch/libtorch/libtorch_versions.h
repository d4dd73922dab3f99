// What differs between versions of LibTorch, from 2.7 on. No other file has a condition on its version: a difference
// gets a name here, and the others use the name. docs/versions.md has the versions that were tried.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/version.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Returns whether LibTorch is of this version or a later one.
#define REPRISE_LIBTORCH_FROM(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

#if REPRISE_LIBTORCH_FROM(2, 13)
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace reprise::internal::libtorch {

// Nodes of autograd's graph have their own reference count from 2.13 on. Before, LibTorch's deleter is what keeps the
// end of a long graph from taking a frame of the stack for each node.
#if REPRISE_LIBTORCH_FROM(2, 13)
template <class Node>
using PointerToNode = c10::intrusive_ptr<Node>;

template <class Node, class... Arguments>
[[nodiscard]] PointerToNode<Node> make_node(Arguments&&... arguments) {
  return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
}
#else
template <class Node>
using PointerToNode = std::shared_ptr<Node>;

template <class Node, class... Arguments>
[[nodiscard]] PointerToNode<Node> make_node(Arguments&&... arguments) {
  return {new Node(std::forward<Arguments>(arguments)...), torch::autograd::deleteNode};
}
#endif

// An engine that delegates to another one, which goes on doing all the work: behaviours of an engine of another
// language (Python's: the interpreter's lock, functions and hooks that are not C++, anomaly mode, errors) stay what
// they are. Without another one it is LibTorch's own.
class DelegatingEngine : public torch::autograd::Engine {
 public:
  using Engine = torch::autograd::Engine;
  using variable_list = torch::autograd::variable_list;
  using edge_list = torch::autograd::edge_list;

  void install_over(Engine& other) { behind_ = &other; }

  variable_list execute(const edge_list& roots, const variable_list& inputs, bool keep_graph, bool create_graph,
                        bool accumulate_grad, const edge_list& outputs) override {
    return behind_ ? behind_->execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs)
                   : Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& task, PointerToNode<torch::autograd::Node> root,
      torch::autograd::InputBuffer&& buffer) override {
    return behind_ ? behind_->execute_with_graph_task(task, std::move(root), std::move(buffer))
                   : Engine::execute_with_graph_task(task, std::move(root), std::move(buffer));
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return behind_ ? behind_->make_anomaly_metadata() : Engine::make_anomaly_metadata();
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return behind_ ? behind_->get_default_saved_variable_hooks() : Engine::get_default_saved_variable_hooks();
  }
#if REPRISE_LIBTORCH_FROM(2, 14)
  std::vector<std::unique_ptr<torch::autograd::NodeCreationHook>> get_node_creation_hooks() override {
    return behind_ ? behind_->get_node_creation_hooks() : Engine::get_node_creation_hooks();
  }
#endif

 private:
  Engine* behind_ = nullptr;
};

// Hooks in front of others, which do the work.
class DelegatingHooks : public torch::autograd::SavedVariableHooks {
 public:
  explicit DelegatingHooks(std::unique_ptr<SavedVariableHooks> behind) : behind_(std::move(behind)) {}

  void call_pack_hook(const at::Tensor& tensor) override { behind_->call_pack_hook(tensor); }
  at::Tensor call_unpack_hook() override { return behind_->call_unpack_hook(); }
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data() const override {
    return behind_->retrieve_unpack_hook_data();
  }
#if REPRISE_LIBTORCH_FROM(2, 15)
  std::optional<c10::SafePyObject> retrieve_unpack_hook() const override {
    return behind_->retrieve_unpack_hook();
  }
#endif

 private:
  const std::unique_ptr<SavedVariableHooks> behind_;
};

// An allocator of a kind of accelerators that delegates to another one, which has the memory. Earlier versions than
// 2.13 have the same by other names, or not at all, and it was not tried there: then there is never one below.
#if REPRISE_LIBTORCH_FROM(2, 13)
class DelegatingAllocator : public c10::DeviceAllocator {
 public:
  using Below = c10::DeviceAllocator;
  // Returns the one there is now. Null if another one cannot delegate to it.
  [[nodiscard]] static Below* below_of(c10::DeviceType type) { return dynamic_cast<Below*>(c10::GetAllocator(type)); }
  // Returns whether it has handed out any memory of the device.
  [[nodiscard]] static bool is_in_use(Below& one, c10::DeviceIndex device) {
    return one.initialized() && one.getDeviceStats(device).allocated_bytes[all].current > 0;
  }

  explicit DelegatingAllocator(Below& below) : below_(below) {}

  bool initialized() override { return below_.initialized(); }
  void emptyCache(c10::MempoolId_t pool) override { below_.emptyCache(pool); }
  void recordStream(const c10::DataPtr& memory, c10::Stream stream) override { use_on(memory, stream); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return below_.getDeviceStats(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override { below_.resetAccumulatedStats(device); }
  void resetPeakStats(c10::DeviceIndex device) override { below_.resetPeakStats(device); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return below_.getMemoryInfo(device);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { below_.copy_data(to, from, bytes); }

 protected:
  // Notes that the memory is used on this stream as well.
  virtual void use_on(const c10::DataPtr&, c10::Stream) = 0;

  [[nodiscard]] Below& below() { return below_; }
  void record_below(const c10::DataPtr& memory, c10::Stream stream) { below_.recordStream(memory, stream); }
  // Returns what it has handed out; and what was freed, but may be in use on another stream.
  [[nodiscard]] std::int64_t handed_out(c10::DeviceIndex device) {
    return below_.getDeviceStats(device).allocated_bytes[all].current;
  }
  [[nodiscard]] std::int64_t waiting(c10::DeviceIndex device) {
    const auto stats = below_.getDeviceStats(device);
    return stats.active_bytes[all].current - stats.allocated_bytes[all].current;
  }

 private:
  static constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  Below& below_;
};
#else
class DelegatingAllocator : public c10::Allocator {
 public:
  using Below = c10::Allocator;
  [[nodiscard]] static Below* below_of(c10::DeviceType) { return nullptr; }
  [[nodiscard]] static bool is_in_use(Below&, c10::DeviceIndex) { return true; }

  explicit DelegatingAllocator(Below& below) : below_(below) {}
  virtual void emptyCache(std::pair<std::uint64_t, std::uint64_t>) {}
  void copy_data(void* to, const void* from, std::size_t bytes) const override { below_.copy_data(to, from, bytes); }

 protected:
  virtual void use_on(const c10::DataPtr&, c10::Stream) = 0;
  [[nodiscard]] Below& below() { return below_; }
  void record_below(const c10::DataPtr&, c10::Stream) {}
  [[nodiscard]] std::int64_t handed_out(c10::DeviceIndex) { return 0; }
  [[nodiscard]] std::int64_t waiting(c10::DeviceIndex) { return 0; }

 private:
  Below& below_;
};
#endif

// LibTorch's class of allocators for CUDA gets functions with almost every version, and one that delegates to another
// (device_cuda) has to pass on all of them: it is there for the versions whose functions it knows.
#define REPRISE_CUDA_ALLOCATOR_IS_KNOWN (REPRISE_LIBTORCH_FROM(2, 13) && !REPRISE_LIBTORCH_FROM(2, 16))
#define REPRISE_CUDA_ALLOCATOR_ANNOTATES REPRISE_LIBTORCH_FROM(2, 14)

// Returns whether what is given to this stream does not run now, but becomes a part of a graph.
[[nodiscard]] inline bool is_capturing(const c10::Stream& stream) {
#if REPRISE_LIBTORCH_FROM(2, 13)
  return c10::impl::VirtualGuardImpl(stream.device_type()).isStreamCapturing(stream);
#else
  return (void)stream, false;
#endif
}

// The call that LibTorch advises where a saved tensor was written to.
#if REPRISE_LIBTORCH_FROM(2, 11)
inline constexpr auto anomaly_detection = "torch.autograd.set_detect_anomaly(True, check_nan=False)";
#else
inline constexpr auto anomaly_detection = "torch.autograd.set_detect_anomaly(True)";
#endif

// Returns what it calls there the node that made the tensor.
[[nodiscard]] inline std::string name_of(const torch::autograd::Node& node) {
#if REPRISE_LIBTORCH_FROM(2, 13)
  return node.forward_op_name();
#else
  return node.name();
#endif
}

// Returns where the kernel for this key, which is there, was registered: the file and the line, and more.
[[nodiscard]] inline std::string registration_of_kernel(const c10::OperatorHandle& handle, c10::DispatchKey key) {
#if REPRISE_LIBTORCH_FROM(2, 9)
  return handle.getComputedKernelForDispatchKey(key).debug();
#else
  const std::string table = "\n" + handle.dumpComputedTable();  // a line for each key
  const std::size_t line = table.find(std::string("\n") + c10::toString(key) + ": ");
  return line == std::string::npos ? "" : table.substr(line + 1, table.find('\n', line + 1) - line - 1);
#endif
}

}  // namespace reprise::internal::libtorch
