#include "torch/trust.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <utility>

namespace reprise::internal {
namespace {

constexpr std::size_t most_kinds = 4096;
constexpr std::uint32_t often = 16, in_several = 4;  // comparisons, and recordings that they were in
constexpr std::uint32_t now_and_then = 16;           // one of so many

bool may_be_trusted(const Recipes& recipes, Id op) {
  return recipes.operators[op].info->name.starts_with("aten::");
}

std::uint64_t kind_of(const Recipes& recipes, Id op) {
  std::uint64_t kind = recipes.operators[op].likeness.back();
  for (const Reference& reference : recipes.references_of(op)) {
    if (!reference.defined || !reference.plain) continue;
    const View& view = reference.view;
    kind = XXH3_64bits_withSeed(view.dims.data(), view.dims.size() * sizeof view.dims[0],
                                kind + static_cast<std::uint64_t>(view.dtype));
  }
  return kind;
}

}  // namespace

bool Trust::suffices(const Recipes& recipes, Id op) {
  if (!may_be_trusted(recipes, op)) return false;
  const auto found = kinds_.find(kind_of(recipes, op));
  if (found == kinds_.end()) return false;
  Kind& kind = found->second;
  return kind.compared >= often && kind.recordings >= in_several && ++kind.asked % now_and_then != 0;
}

void Trust::grow(const Recipes& recipes, Id op, std::uint32_t recording) {
  if (!may_be_trusted(recipes, op)) return;
  if (kinds_.size() >= most_kinds) kinds_.clear();  // trust has to be won again
  Kind& kind = kinds_[kind_of(recipes, op)];
  ++kind.compared;
  if (std::exchange(kind.last_recording, recording) != recording) ++kind.recordings;
}

}  // namespace reprise::internal
