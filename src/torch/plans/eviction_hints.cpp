#include "torch/plans/eviction_hints.h"

#include <algorithm>
#include <functional>

namespace reprise::internal {
namespace {

constexpr std::size_t most_structural_hashes = 4096;
constexpr double counts_still = 0.5;

// By value: whether the plan has evicted it when backward begins.
std::vector<bool> evicted_by(const ExecutablePlan& executable) {
  std::vector<bool> evicted(executable.owned.size(), false);
  const auto event =
      std::find_if(executable.events.begin(), executable.events.end(), [](auto name) { return name != 0; });
  const auto backward = static_cast<Id>(event - executable.events.begin());
  for (std::uint32_t s = 0; s < executable.after[backward]; ++s) {
    const ExecutablePlan::Step& step = executable.steps[s];
    switch (step.kind) {
      case ExecutablePlan::Step::Kind::drop: evicted[step.target] = true; break;
      case ExecutablePlan::Step::Kind::unpack: evicted[step.target] = false; break;
      case ExecutablePlan::Step::Kind::replay:
        for (const Id value : executable.replays[step.target].outputs) evicted[value] = false;
        break;
      default: break;
    }
  }
  return evicted;
}

// The values that backward needs and that can be recomputed, each once.
std::vector<Id> saved_in(const RecordedPass& pass) {
  std::vector<Id> saved;
  for (const Need& need : pass.profile.needs) {
    if (pass.recipes->values[need.value].maker != no_operator) saved.push_back(need.value);
  }
  std::sort(saved.begin(), saved.end());
  saved.erase(std::unique(saved.begin(), saved.end()), saved.end());
  return saved;
}

}  // namespace

void EvictionHints::learn(const RecordedPass& pass) {
  if (!pass.executable || !pass.recipes) return;
  const std::vector<bool> evicted = evicted_by(*pass.executable);
  if (std::find(evicted.begin(), evicted.end(), true) == evicted.end()) return;
  for (auto& [structural_hash, part] : by_structural_hash_) {
    part.kept *= counts_still;
    part.saved *= counts_still;
  }
  const Recipes& recipes = *pass.recipes;
  const std::vector<Id> saved = saved_in(pass);
  double bytes = 0, bytes_evicted = 0;
  for (const Id value : saved) {
    bytes += static_cast<double>(recipes.values[value].bytes);
    if (evicted[value]) bytes_evicted += static_cast<double>(recipes.values[value].bytes);
  }
  const double counts = bytes_evicted / bytes;  // a plan that had to evict more has more to say
  for (const Id value : saved) {
    const RecordedValue& recorded = recipes.values[value];
    Part& part = by_structural_hash_[recipes.operators[recorded.maker].structural_hash.back()];
    part.saved += counts * static_cast<double>(recorded.bytes);
    if (!evicted[value]) part.kept += counts * static_cast<double>(recorded.bytes);
  }
  let_the_oldest_go();
}

EvictionPriority EvictionHints::priority_of(std::uint32_t structural_hash) const {
  const auto found = by_structural_hash_.find(structural_hash);
  if (found == by_structural_hash_.end()) return EvictionPriority::unknown;
  const double kept = found->second.kept / found->second.saved;
  return kept < 0.25   ? EvictionPriority::first
         : kept < 0.6  ? EvictionPriority::early
         : kept < 0.95 ? EvictionPriority::late
                       : EvictionPriority::last;
}

std::vector<EvictionHints::Seen> EvictionHints::all() const {
  std::vector<Seen> all;
  for (const auto& [structural_hash, part] : by_structural_hash_)
    all.push_back({structural_hash, part.kept, part.saved});
  return all;
}

void EvictionHints::add(const std::vector<Seen>& seen) {
  for (const Seen& one : seen) {
    Part& part = by_structural_hash_[one.structural_hash];
    part.kept += one.kept;
    part.saved += one.saved;
  }
  let_the_oldest_go();
}

// What no plan has had for long has become little.
void EvictionHints::let_the_oldest_go() {
  if (by_structural_hash_.size() <= most_structural_hashes) return;
  std::vector<double> bytes;
  for (const auto& [structural_hash, part] : by_structural_hash_) bytes.push_back(part.saved);
  const auto too_many = bytes.begin() + most_structural_hashes;
  std::nth_element(bytes.begin(), too_many, bytes.end(), std::greater<>());
  std::erase_if(by_structural_hash_, [least = *too_many](const auto& one) { return one.second.saved <= least; });
}

}  // namespace reprise::internal
