#include "torch/plans/advice.h"

#include <algorithm>
#include <functional>

namespace reprise::internal {
namespace {

constexpr std::size_t most_likenesses = 4096;
constexpr double counts_still = 0.5;

// By value: whether the script has it when backward begins, of those that backward needs; nothing if it has all.
std::vector<bool> forgotten_by(const Script& script) {
  std::vector<bool> forgotten(script.owned.size(), false);
  const auto event = std::find_if(script.events.begin(), script.events.end(), [](auto name) { return name != 0; });
  const auto backward = static_cast<Id>(event - script.events.begin());
  for (std::uint32_t s = 0; s < script.after[backward]; ++s) {
    const Script::Step& step = script.steps[s];
    switch (step.kind) {
      case Script::Step::Kind::drop: forgotten[step.target] = true; break;
      case Script::Step::Kind::unpack: forgotten[step.target] = false; break;
      case Script::Step::Kind::replay:
        for (const Id value : script.replays[step.target].outputs) forgotten[value] = false;
        break;
      default: break;
    }
  }
  return forgotten;
}

// The values that backward needs and that can be rebuilt, each once.
std::vector<Id> saved_in(const Period& period) {
  std::vector<Id> saved;
  for (const Need& need : period.seen.needs) {
    if (period.recipes->values[need.value].maker != no_operator) saved.push_back(need.value);
  }
  std::sort(saved.begin(), saved.end());
  saved.erase(std::unique(saved.begin(), saved.end()), saved.end());
  return saved;
}

}  // namespace

void Advice::learn(const Period& period) {
  if (!period.script || !period.recipes) return;
  const std::vector<bool> forgotten = forgotten_by(*period.script);
  if (std::find(forgotten.begin(), forgotten.end(), true) == forgotten.end()) return;
  for (auto& [likeness, part] : by_likeness_) {
    part.kept *= counts_still;
    part.saved *= counts_still;
  }
  const Recipes& recipes = *period.recipes;
  const std::vector<Id> saved = saved_in(period);
  double bytes = 0, bytes_forgotten = 0;
  for (const Id value : saved) {
    bytes += static_cast<double>(recipes.values[value].bytes);
    if (forgotten[value]) bytes_forgotten += static_cast<double>(recipes.values[value].bytes);
  }
  const double counts = bytes_forgotten / bytes;  // a plan that had to forget more has more to say
  for (const Id value : saved) {
    const RecordedValue& recorded = recipes.values[value];
    Part& part = by_likeness_[recipes.operators[recorded.maker].likeness.back()];
    part.saved += counts * static_cast<double>(recorded.bytes);
    if (!forgotten[value]) part.kept += counts * static_cast<double>(recorded.bytes);
  }
  let_the_oldest_go();
}

Turn Advice::turn_of(std::uint32_t likeness) const {
  const auto found = by_likeness_.find(likeness);
  if (found == by_likeness_.end()) return Turn::unknown;
  const double kept = found->second.kept / found->second.saved;
  return kept < 0.25 ? Turn::first : kept < 0.6 ? Turn::early : kept < 0.95 ? Turn::late : Turn::last;
}

std::vector<Advice::Seen> Advice::all() const {
  std::vector<Seen> all;
  for (const auto& [likeness, part] : by_likeness_) all.push_back({likeness, part.kept, part.saved});
  return all;
}

void Advice::add(const std::vector<Seen>& seen) {
  for (const Seen& one : seen) {
    Part& part = by_likeness_[one.likeness];
    part.kept += one.kept;
    part.saved += one.saved;
  }
  let_the_oldest_go();
}

// What no plan has had for long has become little.
void Advice::let_the_oldest_go() {
  if (by_likeness_.size() <= most_likenesses) return;
  std::vector<double> bytes;
  for (const auto& [likeness, part] : by_likeness_) bytes.push_back(part.saved);
  const auto too_many = bytes.begin() + most_likenesses;
  std::nth_element(bytes.begin(), too_many, bytes.end(), std::greater<>());
  std::erase_if(by_likeness_, [least = *too_many](const auto& one) { return one.second.saved <= least; });
}

}  // namespace reprise::internal
