#include "torch/replay/uninitialized_bytes.h"

#include <algorithm>

#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/recipes/fingerprint.h"
#include "torch/replay/replayer.h"

namespace reprise::internal {
namespace {

// What memory is filled with.
constexpr std::uint8_t one_pattern = 0x5a, other_pattern = 0xa5;

bool is_pattern(std::uint8_t byte) {
  return byte == one_pattern || byte == other_pattern;
}

// What is kept of a recomputed value: there may be no room for two of them.
struct Recomputed {
  Fingerprint fingerprint;
  Fingerprint without_patterns;  // as if bytes of either pattern were the same
  bool untouched = false;        // no byte of it was written
};

Recomputed recomputed_on(std::uint8_t pattern, Recording& recording, Id value, const View& view, Anew anew) {
  const meter::FilledMemory filled(pattern);
  const c10::Storage storage = recompute_anew(recording, value, anew);  // seen only here
  auto* const bytes = static_cast<std::uint8_t*>(storage.mutable_data());
  auto* const end = bytes + storage.nbytes();
  Recomputed result;
  result.untouched = std::all_of(bytes, end, [&](std::uint8_t byte) { return byte == pattern; });
  result.fingerprint = fingerprint(storage, view);
  std::replace_if(bytes, end, is_pattern, std::uint8_t{0});
  result.without_patterns = fingerprint(storage, view);
  return result;
}

bool show_memory(Recording& recording, Id value, const View& view, std::span<const std::size_t> blocks, Anew anew) {
  const Recomputed first = recomputed_on(one_pattern, recording, value, view, anew);
  if (first.untouched) return false;
  const Recomputed again = recomputed_on(one_pattern, recording, value, view, anew);
  if (again.fingerprint != first.fingerprint) return false;
  const Recomputed other = recomputed_on(other_pattern, recording, value, view, anew);
  return std::all_of(blocks.begin(), blocks.end(), [&](std::size_t block) {
    return first.fingerprint[block] != other.fingerprint[block] &&
           first.without_patterns[block] == other.without_patterns[block];
  });
}

}  // namespace

bool differs_only_in_uninitialized(Recording& recording, Id value, const View& view,
                                   std::span<const std::size_t> blocks) {
  if (view.device.type() != c10::DeviceType::CPU) return false;  // its memory cannot be filled with patterns
  {
    const Arbiter lock;
    if (!recording.values().recomputable(value)) return false;
  }
  try {
    // Mostly the operator itself leaves them uninitialized; else one whose result it copied.
    return show_memory(recording, value, view, blocks, Anew::itself) ||
           show_memory(recording, value, view, blocks, Anew::everything);
  } catch (const std::exception&) {  // no room to find out, or an input that has changed
    return false;
  }
}

}  // namespace reprise::internal
