#include "cases.h"

#include <cstdlib>

#include "exhaustive.h"
#include "random_trace.h"

namespace reprise::testing {
namespace {

// Values and entries of tiers. Times make many states of one.
int small_size(CaseKind kind) {
  return kind == CaseKind::overlapping_tiers ? 10 : 14;
}

// Takes entries away at random until exhaustive search can cope.
void thin_out_tiers(Trace& trace, Random& random, int size) {
  while (!small_enough_for_exhaustive_search(trace, size)) {
    std::vector<Tier*> with_entries;
    for (Tier& tier : trace.tiers) {
      if (!tier.entries.empty()) with_entries.push_back(&tier);
    }
    if (with_entries.empty()) return;
    auto& entries = with_entries[random.below(with_entries.size())]->entries;
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(random.below(entries.size())));
  }
}

RandomTraceOptions options_of(CaseKind kind) {
  RandomTraceOptions options;
  const bool tiers = kind >= CaseKind::tiers;
  options.packed_tier = options.disk_tier = tiers ? 0.7 : 0;
  options.limited_capacity = kind == CaseKind::limited_tiers ? 0.8 : kind == CaseKind::overlapping_tiers ? 0.2 : 0;
  if (kind == CaseKind::overlapping_tiers) {
    options.packed_tier = 0.2;
    options.disk_tier = options.overlap = 1;
  }
  return options;
}

}  // namespace

const char* name(CaseKind kind) {
  switch (kind) {
    case CaseKind::graph: return "graph";
    case CaseKind::step: return "training step";
    case CaseKind::timeline: return "timeline";
    case CaseKind::tiers: return "timeline with tiers";
    case CaseKind::limited_tiers: return "timeline with limited tiers";
    case CaseKind::overlapping_tiers: return "timeline with tiers that overlap";
  }
  return "unknown";
}

const std::vector<CaseKind>& all_kinds() {
  static const std::vector<CaseKind> kinds = {CaseKind::graph, CaseKind::step,          CaseKind::timeline,
                                              CaseKind::tiers, CaseKind::limited_tiers, CaseKind::overlapping_tiers};
  return kinds;
}

Trace random_case(CaseKind kind, std::uint64_t seed, int moments) {
  if (kind == CaseKind::graph) return random_graph(seed, moments);
  if (kind == CaseKind::step) return random_training_step(seed, std::max(1, (moments - 1) / 2));
  RandomTraceOptions options = options_of(kind);
  options.moments = moments;
  return random_trace(seed, options);
}

Trace small_case(CaseKind kind, std::uint64_t seed) {
  Random random(seed * 77 + 5);
  if (kind == CaseKind::graph) return random_graph(seed, random.between(3, 9));
  if (kind == CaseKind::step) return random_training_step(seed, random.between(2, 4));
  RandomTraceOptions options = options_of(kind);
  if (kind == CaseKind::timeline) {
    options.moments = random.between(3, 8);
  } else {  // few values, so that most keep their entries
    options.moments = random.between(3, 6);
    options.several_outputs = 0.15;
    options.outside = 0.1;
  }
  Trace trace = random_trace(seed, options);
  thin_out_tiers(trace, random, small_size(kind));
  return small_enough_for_exhaustive_search(trace, small_size(kind) + 2) ? trace : small_case(kind, seed + 1'000'003);
}

std::uint64_t cases(std::uint64_t few) {
  return std::getenv("REPRISE_LONG") ? 50 * few : few;
}

std::string read_aloud(const Plan& plan) {
  std::string text = "budget " + std::to_string(plan.budget) + ":";
  for (const Action& action : plan.actions) {
    text += std::string(text.back() == ':' ? " " : ", ") + name(action.kind) + " " + std::to_string(action.target);
    if (action.kind >= Action::Kind::put) text += " (tier " + std::to_string(action.tier) + ")";
  }
  return text;
}

}  // namespace reprise::testing
