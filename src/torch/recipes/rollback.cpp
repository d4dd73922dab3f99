#include "torch/recipes/rollback.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <cstring>
#include <mutex>

#include "reprise/trace/amount.h"

namespace reprise::internal {
namespace {

thread_local Undo* present = nullptr;

// The engine says which node it runs; the callback itself only hears a name.
std::unique_ptr<at::ObserverContext> see_node(const at::RecordFunction&) {
  if (!present) return nullptr;
  const auto node = torch::autograd::get_current_node();
  if (const auto* const leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get())) {
    present->before_gradient(leaf->variable);
  }
  return nullptr;
}

}  // namespace

Undo::Undo(Bytes most) : most_(most), began_(meter::allocations()), outer_(present) {
  before_draw(libtorch::default_generator(c10::Device(c10::DeviceType::CPU)));
  nodes_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(see_node).scopes({at::RecordScope::BACKWARD_FUNCTION}));
  present = this;
}

Undo::~Undo() {
  stop();
  meter::discharge(copied_);
}

void Undo::stop() {
  if (!nodes_) return;
  at::removeCallback(*nodes_);
  nodes_.reset();
  present = outer_;
}

Undo* Undo::of_this_thread() {
  return present;
}

void Undo::before_write(const at::Tensor& tensor) noexcept try {
  if (!why_not_replayable_.empty() || !tensor.has_storage()) return;
  c10::StorageImpl& storage = *libtorch::storage_of(tensor);
  const meter::Header* const header = meter::header_of(storage);
  if (storage.nbytes() == 0 || (header && header->birth >= began_)) return;
  if (tensor.is_leaf() && tensor.requires_grad()) {
    why_not_replayable_ = "it had begun to write parameters";
  } else if (storage.device_type() != c10::DeviceType::CPU) {
    why_not_replayable_ = "it had written into a tensor on " + storage.device().str();
  } else {
    copy_contents(storage);
  }
} catch (...) {  // out of memory
  why_not_replayable_ = "there was no memory for copies of what it overwrote";
}

void Undo::copy_contents(c10::StorageImpl& storage) {
  if (known_.contains(&storage)) return;
  const auto bytes = static_cast<Bytes>(storage.nbytes());
  if (bytes > most_ - copied_ || !meter::charge(bytes)) {
    why_not_replayable_ = "it had overwritten " + format_bytes(copied_ + bytes) +
                          " of tensors that were there before it, more than is kept a copy of";
    return;
  }
  copied_ += bytes;
  auto copy = std::make_unique<char[]>(storage.nbytes());
  std::memcpy(copy.get(), storage.data(), storage.nbytes());
  contents_.push_back({libtorch::share(&storage).getWeakStorageImpl(), storage.nbytes(), std::move(copy)});
  known_.insert(&storage);
}

void Undo::before_draw(const at::Generator& given) noexcept try {
  at::Generator generator = given;
  if (!generator.defined() || known_.contains(generator.unsafeGetGeneratorImpl())) return;
  c10::GeneratorImpl& its = *generator.unsafeGetGeneratorImpl();
  if (!libtorch::has_state(its)) {
    why_not_replayable_ = "it had drawn from a generator that is not LibTorch's own";
    return;
  }
  const std::scoped_lock lock(its.mutex_);
  drawn_.push_back({generator, libtorch::state_of(its)});
  known_.insert(&its);
} catch (...) {
  why_not_replayable_ = "there was no memory for the states of generators that it drew from";
}

void Undo::before_gradient(const at::Tensor& leaf) noexcept try {
  if (!leaf.defined() || known_.contains(leaf.unsafeGetTensorImpl())) return;
  gradients_.push_back({leaf, leaf.grad()});
  known_.insert(leaf.unsafeGetTensorImpl());
} catch (...) {
  why_not_replayable_ = "there was no memory to note the gradients that were there before it";
}

void Undo::put_back() {
  stop();
  for (Contents& one : contents_) {
    const auto storage = one.storage.lock();
    if (storage && storage->nbytes() == one.bytes) std::memcpy(storage->mutable_data(), one.copy.get(), one.bytes);
  }
  for (Gradient& one : gradients_) one.leaf.mutable_grad() = one.gradient;
  for (Drawn& one : drawn_) {
    c10::GeneratorImpl& generator = *one.generator.unsafeGetGeneratorImpl();
    const std::scoped_lock lock(generator.mutex_);
    libtorch::restore(generator, one.state);
  }
}

}  // namespace reprise::internal
