#include "live_bits.h"

#include <algorithm>

namespace reprise::benchmarks {

Bits::Bits(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    Entry entry{name, tensor.defined(), {}};
    if (entry.defined) {
      const torch::Tensor dense = tensor.detach().contiguous();
      const char* const data = static_cast<const char*>(dense.const_data_ptr());
      entry.bytes.assign(data, data + dense.nbytes());
    }
    entries_.push_back(std::move(entry));
  }
}

void Bits::restore(const NamedTensors& tensors) const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    torch::Tensor tensor = tensors.at(i).second;
    // from_blob wants a pointer it may write to; it is only read.
    void* const data = const_cast<char*>(entries_[i].bytes.data());
    tensor.copy_(torch::from_blob(data, tensor.sizes(), tensor.dtype()));
  }
}

std::optional<std::string> Bits::first_difference(const Bits& other) const {
  for (std::size_t i = 0; i < std::max(entries_.size(), other.entries_.size()); ++i) {
    if (i >= entries_.size()) return other.entries_[i].name;
    if (i >= other.entries_.size()) return entries_[i].name;
    const Entry &a = entries_[i], &b = other.entries_[i];
    if (a.name != b.name || a.defined != b.defined || a.bytes != b.bytes) return a.name;
  }
  return std::nullopt;
}

}  // namespace reprise::benchmarks
