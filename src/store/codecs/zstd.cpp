// Contexts in memory of the caller's are a part of zstd's interface that may change. It has not for years, and where it
// does, a context does not fit and arrays are kept exactly.
#define ZSTD_STATIC_LINKING_ONLY
#include <fmt/format.h>
#include <zstd.h>

#include <memory>

#include "reprise/store/codec.h"
#include "store/coded_bytes.h"

namespace reprise::internal {
namespace {

// The fastest. Higher levels make little of numbers, for several times the time.
constexpr int level = 1;
constexpr std::size_t alignment = 8;          // of a context
constexpr std::size_t least_bytes = 16;       // about what a frame has besides its contents
constexpr std::size_t least_block_bytes = 4;  // of a block: the same byte again and again

std::size_t context_bytes(std::size_t plain_bytes) {
  return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, plain_bytes, 0));
}

// What is coded is one frame.
class ZstdCodec : public Codec {
 public:
  std::string_view name() const override { return "zstd"; }
  std::string_view summary() const override { return "whatever zstd makes smaller, at its level 1"; }
  bool exact() const override { return true; }

  // The result, which is of no use unless it is smaller than the array, and behind it everything zstd works with.
  std::optional<std::size_t> room(const ArrayView& array) const override {
    if (array.bytes() < least_bytes) return std::nullopt;
    return array.bytes() - 1 + (alignment - 1) + context_bytes(array.bytes());
  }

  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    if (array.bytes() < least_bytes || room.size() < array.bytes() - 1) return std::nullopt;
    const std::span<std::byte> result = room.first(array.bytes() - 1);
    void* free = room.data() + result.size();
    std::size_t free_bytes = room.size() - result.size();
    if (!std::align(alignment, context_bytes(array.bytes()), free, free_bytes)) return std::nullopt;
    ZSTD_CCtx* const context = ZSTD_initStaticCCtx(free, free_bytes);
    if (!context) return std::nullopt;
    const std::size_t coded =
        ZSTD_compressCCtx(context, result.data(), result.size(), array.data().data(), array.bytes(), level);
    if (ZSTD_isError(coded)) return std::nullopt;
    return coded;
  }

  // A frame says how many bytes it has in it, which need not be so: each of its blocks has some room.
  void check_size(std::span<const std::byte> coded, Element element, std::size_t bytes) const override {
    const unsigned long long content = ZSTD_getFrameContentSize(coded.data(), coded.size());
    if (content == ZSTD_CONTENTSIZE_UNKNOWN || content == ZSTD_CONTENTSIZE_ERROR) {
      refuse_coded_bytes(*this, coded, element, bytes, "they are no frame that says how much is in it");
    }
    if (content != bytes) {
      refuse_coded_bytes(*this, coded, element, bytes, fmt::format("there are {} in them", content));
    }
    if (bytes / ZSTD_BLOCKSIZE_MAX > coded.size() / least_block_bytes) {
      refuse_coded_bytes(*this, coded, element, bytes, "they are too few");
    }
  }

  void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const override {
    check_size(coded, element, out.size());
    const std::size_t decoded = ZSTD_decompress(out.data(), out.size(), coded.data(), coded.size());
    if (ZSTD_isError(decoded)) refuse_coded_bytes(*this, coded, element, out.size(), ZSTD_getErrorName(decoded));
    if (decoded != out.size()) refuse_coded_bytes(*this, coded, element, out.size(), "there are fewer in them");
  }
};

}  // namespace

const Codec& zstd_codec() {
  static const ZstdCodec codec;
  return codec;
}

}  // namespace reprise::internal
