#include "report/tier_words.h"

#include <fmt/format.h>

#include "report/words.h"
#include "reprise/trace/amount.h"
#include "trace/printable.h"

namespace reprise::internal {
namespace {

bool is_disk(const Tier& tier) {
  return tier.name == "disk";
}

// As sessions and chains call them, and else whatever a file says.
std::string noun(const Tier& tier) {
  if (is_disk(tier)) return "disk";
  return tier.name == "host" ? "the host" : fmt::format("'{}'", printable(tier.name));
}

}  // namespace

std::string where(const Tier& tier) {
  if (tier.in_budget) return "packed";
  return (is_disk(tier) || tier.name == "host" ? "on " : "in ") + noun(tier);
}

std::string putting(const Tier& tier) {
  if (tier.in_budget) return "packing";
  return (is_disk(tier) ? "writing to " : "copying to ") + noun(tier);
}

std::string getting(const Tier& tier) {
  if (tier.in_budget) return "unpacking";
  return (is_disk(tier) ? "reading from " : "copying from ") + noun(tier);
}

std::string both_ways(const Tier& tier) {
  if (tier.in_budget) return "packing and unpacking";
  return is_disk(tier) ? "writing and reading" : "copying there and back";
}

std::vector<TierUse> tiers_used(const Plan& plan, const Simulation& simulation) {
  std::vector<TierUse> uses(plan.tiers.size());
  for (const Action& action : plan.actions) {
    if (action.kind == Action::Kind::put) ++uses[action.tier].puts;
    if (action.kind == Action::Kind::get) ++uses[action.tier].gets;
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    uses[i].tier = static_cast<Id>(i);
    uses[i].peak = simulation.tier_peaks[i];
  }
  std::erase_if(uses, [](const TierUse& use) { return use.puts == 0; });
  return uses;
}

std::string tier_lines(const Plan& plan, const Simulation& simulation) {
  std::string text;
  for (const TierUse& use : tiers_used(plan, simulation)) {
    text += line("tier", fmt::format("'{}': {}, {}, at most {} there", printable(plan.tiers[use.tier].name),
                                     count(use.puts, "put"), count(use.gets, "get"), format_bytes(use.peak)));
  }
  return text;
}

}  // namespace reprise::internal
