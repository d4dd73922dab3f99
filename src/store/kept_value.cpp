#include "store/kept_value.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace reprise::internal {
namespace {

class Writer {
 public:
  template <class T>
  void number(T value) {
    static_assert(sizeof(T) == 8);
    bytes(&value, sizeof value);
  }
  void bytes(const void* from, std::size_t count) {
    const auto* const first = static_cast<const std::byte*>(from);
    text.insert(text.end(), first, first + count);
  }
  std::vector<std::byte> text;
};

// Reads numbers and texts from bytes, never beyond their end.
class DescriptionReader {
 public:
  explicit DescriptionReader(std::span<const std::byte> text) : left_(text) {}

  template <class T>
  [[nodiscard]] T number() {
    static_assert(sizeof(T) == 8);
    T value{};
    if (const auto from = take(sizeof value); !from.empty()) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::string words(std::uint64_t count) {
    const auto from = take(count);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> take(std::uint64_t count) {
    good_ = good_ && count <= left_.size();
    if (!good_) return {};
    const auto result = left_.first(count);
    left_ = left_.subspan(count);
    return result;
  }
  std::span<const std::byte> left_;
  bool good_ = true;
};

}  // namespace

Bytes kept_description_bytes(std::string_view key, std::size_t dimensions, std::string_view codec) {
  const std::size_t numbers = 8 + dimensions, checksum = 1;
  return static_cast<Bytes>(8 * (numbers + checksum) + key.size() + codec.size());
}

std::vector<std::byte> describe_kept(const StoredValue& value) {
  const std::string_view codec = value.codec->name();
  Writer out;
  out.number<Bytes>(kept_description_bytes(value.key, value.shape.size(), codec));
  out.number<std::uint64_t>(value.number);
  out.number<double>(value.cost);
  out.number<std::uint64_t>(static_cast<std::uint64_t>(value.plain_bytes));
  out.number<std::uint64_t>(static_cast<std::uint64_t>(value.element));
  out.number<std::uint64_t>(value.shape.size());
  for (const std::int64_t size : value.shape) out.number<std::int64_t>(size);
  out.number<std::uint64_t>(value.key.size());
  out.number<std::uint64_t>(codec.size());
  out.bytes(value.key.data(), value.key.size());
  out.bytes(codec.data(), codec.size());
  out.number<std::uint64_t>(XXH3_64bits(out.text.data(), out.text.size()));
  return std::move(out.text);
}

std::shared_ptr<StoredValue> kept_value(std::span<const std::byte> description, std::size_t coded_bytes,
                                        const std::filesystem::path& file, const Codec* own) {
  const auto refuse = [&](const std::string& why) {
    throw DiskError(fmt::format("[store] cannot use {}: {}", file.string(), why));
  };
  DescriptionReader checksum(description.last(std::min<std::size_t>(description.size(), 8)));
  if (description.size() < 8 ||
      checksum.number<std::uint64_t>() != XXH3_64bits(description.data(), description.size() - 8)) {
    refuse("its description is damaged (wrong checksum)");
  }
  DescriptionReader in(description.first(description.size() - 8));
  const auto value = std::make_shared<StoredValue>();
  (void)in.number<std::uint64_t>();
  value->number = in.number<std::uint64_t>();
  value->cost = in.number<double>();
  value->plain_bytes = in.number<std::int64_t>();
  const auto element = in.number<std::uint64_t>();
  const auto dimensions = in.number<std::uint64_t>();
  if (dimensions > in.left() / 8) refuse("its description is damaged (dimensions)");
  for (std::uint64_t k = 0; k < dimensions; ++k) value->shape.push_back(in.number<std::int64_t>());
  const auto of_key = in.number<std::uint64_t>(), of_codec = in.number<std::uint64_t>();
  value->key = in.words(of_key);
  const std::string codec = in.words(of_codec);
  if (!in.good() || in.left() > 0 || element > static_cast<std::uint64_t>(Element::complex128) ||
      std::isnan(value->cost)) {
    refuse("its description is damaged");
  }
  value->element = static_cast<Element>(element);
  try {
    if (value->plain_bytes < 0 ||
        elements_of(value->shape) * bytes_of(value->element) != static_cast<std::uint64_t>(value->plain_bytes)) {
      refuse("its description is damaged (sizes)");
    }
  } catch (const BadOption& error) {
    refuse(error.what());
  }
  try {
    value->codec = own && own->name() == codec ? own : &reprise::codec(codec);
  } catch (const BadOption&) {
    refuse(fmt::format("codec '{}' made it, which is neither the one that was given nor one of the library's", codec));
  }
  value->bytes = static_cast<Bytes>(coded_bytes);
  // So that arrays may be made before their files are read. Other codecs look at the coded bytes first.
  if (codec == "exact" && value->bytes != value->plain_bytes) {
    refuse(fmt::format("it has {} bytes of an array of {}", value->bytes, value->plain_bytes));
  }
  return value;
}

}  // namespace reprise::internal
