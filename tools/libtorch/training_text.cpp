#include "libtorch/training_text.h"

#include <array>

namespace reprise::tools {

Text::Text(std::string_view text) {
  std::array<std::int64_t, 256> number{};
  number.fill(-1);
  for (const char c : text) number[static_cast<unsigned char>(c)] = 0;
  for (std::int64_t& n : number) {
    if (n == 0) n = vocabulary_++;
  }
  data_ = torch::empty({static_cast<std::int64_t>(text.size())}, torch::kUInt8);
  auto* const data = data_.data_ptr<std::uint8_t>();
  for (std::size_t i = 0; i < text.size(); ++i) {
    data[i] = static_cast<std::uint8_t>(number[static_cast<unsigned char>(text[i])]);
  }
}

Text::Batch Text::draw(std::int64_t batch, std::int64_t length, at::Generator& generator) const {
  const at::NoGradGuard no_gradients;
  const torch::Tensor places = torch::randint(characters() - length, {batch, 1}, generator, torch::kLong);
  const torch::Tensor seen = data_.index({places + torch::arange(length + 1)}).to(torch::kLong);
  using torch::indexing::Slice;
  return {seen.index({Slice(), Slice(0, length)}).contiguous(), seen.index({Slice(), Slice(1)}).contiguous()};
}

}  // namespace reprise::tools
