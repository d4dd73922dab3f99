#include "torch/evict/offloaded_gradients.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "torch/libtorch/libtorch.h"
#include "torch/libtorch/per_thread.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"

namespace reprise::internal {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

struct Innermost {
  OffloadedGradients* gradients = nullptr;
};

// Its code is LibTorch's, whatever it computes: not a function of the program's, in C++ or in Python.
bool is_of_libtorch(const Node& node) {
  return libtorch::is_of_libtorch(node) || typeid(node) == typeid(AccumulateGrad);
}

// Returns where its gradient goes to. Null if it is another kind of node, or has hooks that see the gradient.
AccumulateGrad* quiet_accumulation(Node& node) {
  auto* const accumulate = dynamic_cast<AccumulateGrad*>(&node);
  const bool has_hooks = accumulate && (!accumulate->post_hooks().empty() || accumulate->tensor_post_acc_grad_hooks());
  return has_hooks ? nullptr : accumulate;
}

}  // namespace

OffloadedGradients* OffloadedGradients::of_this_thread() {
  return of_thread<Innermost>().gradients;
}

OffloadedGradients::OffloadedGradients(std::shared_ptr<RecordingContext> context) : context_(std::move(context)) {
  of_thread<Innermost>().gradients = this;
}

OffloadedGradients::~OffloadedGradients() {
  of_thread<Innermost>().gradients = nullptr;
  try {
    bring_back();
  } catch (...) {  // backward has failed already, and says why
  }
}

void OffloadedGradients::begin_node() {
  const auto node = torch::autograd::get_current_node();
  of_libtorch_.push_back(node && is_of_libtorch(*node));
  auto* const accumulate = node ? dynamic_cast<AccumulateGrad*>(node.get()) : nullptr;
  const auto found = accumulate ? number_of_.find(accumulate->variable.unsafeGetTensorImpl()) : number_of_.end();
  if (found == number_of_.end() || !gradients_[found->second].waiting.defined()) return;
  try {
    bring_back(gradients_[found->second]);
  } catch (...) {  // a node cannot throw it; the end of backward can
    error_ = std::current_exception();
  }
}

void OffloadedGradients::end_node() {
  if (!of_libtorch_.empty()) of_libtorch_.pop_back();
  const auto node = torch::autograd::get_current_node();
  AccumulateGrad* const accumulate = node ? quiet_accumulation(*node) : nullptr;
  if (!accumulate) return;
  const at::Tensor& parameter = accumulate->variable;
  const auto [entry, is_new] = number_of_.try_emplace(parameter.unsafeGetTensorImpl(), gradients_.size());
  if (is_new) gradients_.push_back({.parameter = parameter});
  gradients_[entry->second].made_on = libtorch::current_stream(parameter.device());
}

Bytes OffloadedGradients::movable_bytes(const Gradient& gradient, DeviceOrdinal device) const {
  if (gradient.stays || gradient.waiting.defined()) return 0;
  const at::Tensor& tensor = gradient.parameter.grad();
  if (!tensor.defined() || tensor.use_count() > 1 || !libtorch::is_plain(tensor) || tensor.requires_grad()) return 0;
  const c10::StorageImpl& storage = *libtorch::storage_of(tensor);
  const meter::Header* const header = meter::header_of(storage);
  if (tensor.storage().use_count() > 1 || context_->device_of(header) != device) return 0;
  return header->tag.recording == 0 ? header->bytes : 0;  // else a recording knows it
}

bool OffloadedGradients::put_largest(const Meter& meter) {
  if (of_libtorch_.empty() || std::count(of_libtorch_.begin(), of_libtorch_.end(), false) > 0) return false;
  const DeviceOrdinal device = context_->device_of(meter);
  TransferTier* const tier = device == untracked ? nullptr : context_->below(device);
  if (!tier) return false;
  Gradient* largest = nullptr;
  Bytes most = tier->costs().least - 1;
  for (Gradient& gradient : gradients_) {
    const Bytes bytes = movable_bytes(gradient, device);
    if (bytes <= most) continue;
    largest = &gradient;
    most = bytes;
  }
  if (!largest) return false;
  at::Tensor& grad = largest->parameter.mutable_grad();
  c10::StorageImpl& storage = *libtorch::storage_of(grad);
  {
    Arbiter lock;
    largest->copy = tier->put(grad.storage(), largest->made_on, context_->verifies_copies_of_gradients());
    lock.unlock();
  }
  largest->copy->finish_put();
  largest->stays = !largest->copy->usable();
  if (largest->stays) {
    largest->copy.reset();
  } else {
    largest->waiting = std::exchange(grad, at::Tensor());
    (void)storage.set_data_ptr(c10::DataPtr(nullptr, storage.device()));
  }
  return true;
}

void OffloadedGradients::bring_back(Gradient& gradient) {
  c10::Storage contents = gradient.copy->contents();  // first: if there is no room, the gradient goes on waiting
  verified_ |= gradient.copy->verified();
  const std::shared_ptr<const TierCopy> copy = std::move(gradient.copy);
  at::Tensor tensor = std::move(gradient.waiting);
  c10::DataPtr nothing(nullptr, contents.device());
  (void)libtorch::storage_of(tensor)->set_data_ptr(contents.set_data_ptr(std::move(nothing)));
  at::Tensor& grad = gradient.parameter.mutable_grad();
  if (!grad.defined()) grad = std::move(tensor);  // else the program has set another one
}

void OffloadedGradients::bring_back() {
  for (Gradient& gradient : gradients_) {
    if (!gradient.waiting.defined()) continue;
    try {
      bring_back(gradient);
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  if (verified_) {
    const Arbiter lock;
    context_->mark_gradients_verified();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace reprise::internal
