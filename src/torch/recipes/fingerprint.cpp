#include "torch/recipes/fingerprint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <numeric>

#include "torch/libtorch/libtorch.h"

namespace reprise::internal {
namespace {

// The dimensions that matter, the largest stride first. Elements that are reached twice (stride 0) count once.
struct Walk {
  std::vector<std::int64_t> sizes, strides;  // in bytes
  std::int64_t offset = 0;
  std::size_t run = 0;  // bytes that lie next to each other at the end of each step
};

Walk walk_of(const View& view) {
  const auto element = static_cast<std::int64_t>(c10::elementSize(view.dtype));
  std::vector<std::size_t> order;
  const auto sizes = view.sizes(), strides = view.strides();
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1 && strides[d] != 0) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return strides[a] > strides[b]; });
  Walk walk;
  walk.offset = view.offset * element;
  std::int64_t run = element;
  while (!order.empty() && strides[order.back()] * element == run) {
    run *= sizes[order.back()];
    order.pop_back();
  }
  walk.run = static_cast<std::size_t>(run);
  for (const std::size_t d : order) {
    walk.sizes.push_back(sizes[d]);
    walk.strides.push_back(strides[d] * element);
  }
  return walk;
}

// Cuts a stream of bytes into blocks and hashes each.
class Blocks {
 public:
  void add(const std::byte* data, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t part = std::min(bytes, fingerprint_block - filled_);
      if (filled_ == 0 && part == fingerprint_block) {
        numbers_.push_back(XXH3_64bits(data, part));
      } else {
        if (filled_ == 0) XXH3_64bits_reset(&state_);
        XXH3_64bits_update(&state_, data, part);
        filled_ += part;
        if (filled_ == fingerprint_block) flush();
      }
      data += part;
      bytes -= part;
    }
  }
  Fingerprint finish() {
    if (filled_ > 0) flush();
    return std::move(numbers_);
  }

 private:
  void flush() {
    numbers_.push_back(XXH3_64bits_digest(&state_));
    filled_ = 0;
  }
  XXH3_state_t state_;
  std::size_t filled_ = 0;
  Fingerprint numbers_;
};

}  // namespace

Fingerprint fingerprint(const c10::Storage& storage, const View& view) {
  const auto sizes = view.sizes();
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return {};
  const Walk walk = walk_of(view);
  const bool on_device = storage.device_type() != c10::DeviceType::CPU;
  const std::vector<std::byte> copy = on_device ? libtorch::on_host(storage) : std::vector<std::byte>();
  const auto* const base = (on_device ? copy.data() : static_cast<const std::byte*>(storage.data())) + walk.offset;
  if (walk.sizes.empty() && walk.run <= fingerprint_block) return {XXH3_64bits(base, walk.run)};
  Blocks blocks;
  std::vector<std::int64_t> index(walk.sizes.size(), 0);
  while (true) {
    const std::int64_t at = std::inner_product(index.begin(), index.end(), walk.strides.begin(), std::int64_t{0});
    blocks.add(base + at, walk.run);
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == walk.sizes[d - 1]) index[--d] = 0;
    if (d == 0) return blocks.finish();
  }
}

Fingerprint fingerprint(const void* data, std::size_t bytes) {
  Blocks blocks;
  blocks.add(static_cast<const std::byte*>(data), bytes);
  return blocks.finish();
}

std::vector<std::size_t> differences(const Fingerprint& one, const Fingerprint& other) {
  std::vector<std::size_t> blocks;
  for (std::size_t block = 0; block < one.size(); ++block) {
    if (one[block] != other[block]) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace reprise::internal
