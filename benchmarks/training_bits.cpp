#include "training_bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace reprise::benchmarks {

Bits::Bits(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    Entry entry{name, tensor.defined(), tensor.defined() && tensor.scalar_type() == torch::kFloat, {}};
    if (entry.defined) {
      const torch::Tensor dense = tensor.detach().contiguous().cpu();
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

double Bits::relative_error(const Bits& right) const {
  const auto number = [](const Entry& entry, std::size_t i) {
    float value = 0;
    std::memcpy(&value, entry.bytes.data() + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  };
  double worst = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry &mine = entries_[i], &theirs = right.entries_.at(i);
    if (mine.bytes.size() != theirs.bytes.size()) return std::numeric_limits<double>::max();
    if (!mine.floats || mine.bytes == theirs.bytes) continue;
    double difference = 0, largest = std::numeric_limits<double>::min();
    for (std::size_t k = 0; k < mine.bytes.size() / sizeof(float); ++k) {
      difference = std::max(difference, std::abs(number(mine, k) - number(theirs, k)));
      largest = std::max(largest, std::abs(number(theirs, k)));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

}  // namespace reprise::benchmarks
