// A text that `reprise train` learns from, as numbers.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::tools {

class Text {
 public:
  // A character is a byte; those that occur get numbers from zero.
  explicit Text(std::string_view text);

  [[nodiscard]] std::int64_t characters() const { return data_.size(0); }
  [[nodiscard]] std::int64_t vocabulary() const { return vocabulary_; }

  struct Batch {
    torch::Tensor characters, next;  // [batch, length], the second one position ahead
  };
  // From places that the generator draws.
  [[nodiscard]] Batch draw(std::int64_t batch, std::int64_t length, at::Generator& generator) const;

 private:
  torch::Tensor data_;
  std::int64_t vocabulary_ = 0;
};

}  // namespace reprise::tools
