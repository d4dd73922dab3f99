#include "reprise/report/inspection.h"

#include <algorithm>
#include <limits>

#include "report/floor_parts.h"
#include "report/idle.h"
#include "reprise/trace/timeline.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t most_candidates = 10;
constexpr std::size_t longest_recompute = 1000;  // operators: whatever takes more is not worth evicting

void sort_by_bytes(const Trace& trace, std::vector<Id>& values) {
  std::stable_sort(values.begin(), values.end(),
                   [&](Id a, Id b) { return trace.values[a].bytes > trace.values[b].bytes; });
}

// Which values are worth evicting, each by itself, while everything else stays as long as it is needed.
class Candidates {
 public:
  using Candidate = Inspection::Candidate;

  Candidates(const Trace& trace, std::optional<Id> peak_moment)
      : trace_(trace), timeline_(trace), peak_moment_(peak_moment), cost_before_(cost_before_moments(trace)) {}

  // Finding out what recomputing costs takes time, so the most promising are looked at first, and no more than needed.
  std::vector<Candidate> best() {
    std::vector<Candidate> promising;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (auto candidate = longest_stretch(v)) promising.push_back(*candidate);
    }
    std::sort(promising.begin(), promising.end(), [this](const auto& a, const auto& b) { return better(a, b); });
    std::vector<Candidate> found;
    for (Candidate& candidate : promising) {
      // It can only get worse than it looks, and so can all after it.
      if (found.size() == most_candidates && !better(candidate, found.back())) break;
      if (!price(candidate)) continue;
      found.insert(std::upper_bound(found.begin(), found.end(), candidate,
                                    [this](const auto& a, const auto& b) { return better(a, b); }),
                   candidate);
      if (found.size() > most_candidates) found.pop_back();
    }
    return found;
  }

 private:
  [[nodiscard]] bool better(const Candidate& a, const Candidate& b) const {
    const double worth_a = a.worth(trace_), worth_b = b.worth(trace_);
    if (worth_a != worth_b) return worth_a > worth_b;
    const Bytes bytes_a = trace_.values[a.value].bytes, bytes_b = trace_.values[b.value].bytes;
    return bytes_a != bytes_b ? bytes_a > bytes_b : a.value < b.value;
  }

  // With the price of its own maker only; none if it cannot be replayed or is never idle.
  [[nodiscard]] std::optional<Candidate> longest_stretch(Id v) const {
    const Id made = timeline_.made_at(v);
    if (made == nowhere || !trace_.replayable(made) || trace_.values[v].bytes == 0) return std::nullopt;
    const auto idle = longest_idle(trace_, timeline_, cost_before_, v);
    if (!idle) return std::nullopt;
    Candidate longest;
    longest.value = v;
    longest.from = idle->from;
    longest.until = idle->until;
    longest.unused = idle->cost;
    longest.recompute = trace_.cost(made);
    longest.at_peak = peak_moment_ && longest.from <= *peak_moment_ && *peak_moment_ <= longest.until;
    return longest;
  }

  // Resident right before this moment if nothing is evicted.
  [[nodiscard]] bool there(Id v, Id moment) const {
    if (const auto& held = trace_.values[v].held; held && held->first < moment && moment <= held->last + 1) return true;
    if (timeline_.made_at(v) == nowhere && trace_.values[v].held && trace_.values[v].held->first >= moment)
      return false;
    const Id taken = timeline_.taken_at(v);
    return timeline_.made_at(v) < moment && timeline_.last_needed(v) >= moment && (taken == nowhere || taken >= moment);
  }

  // What it costs to replay the value right before it is needed again. False: it cannot be done.
  bool price(Candidate& candidate) {
    const Id needed = candidate.until + 1;
    ++visit_;
    visited_.resize(trace_.moments.size(), 0);
    std::vector<Id> missing = {timeline_.made_at(candidate.value)};
    visited_[missing[0]] = visit_;
    candidate.recompute = 0;
    candidate.replays = 0;
    while (!missing.empty()) {
      const Id maker = missing.back();
      missing.pop_back();
      if (!trace_.replayable(maker) || ++candidate.replays > longest_recompute) return false;
      candidate.recompute += trace_.cost(maker);
      for (const Id input : trace_.inputs(maker)) {
        if (there(input, needed)) continue;
        const Id made = timeline_.made_at(input);
        if (made == nowhere) return false;
        if (visited_[made] == visit_) continue;
        visited_[made] = visit_;
        missing.push_back(made);
      }
    }
    return true;
  }

  const Trace& trace_;
  const Timeline timeline_;
  const std::optional<Id> peak_moment_;
  std::vector<double> cost_before_;  // by moment: of all moments before it
  std::vector<int> visited_;         // by moment: the last visit
  int visit_ = 0;
};

std::optional<Inspection::Peak> find_peak(const Trace& trace, const Plan& everything) {
  if (trace.moments.empty()) return std::nullopt;
  const Simulation simulation = simulate(trace, everything, {.record_live = false, .check_budget = false});
  Inspection::Peak peak;
  peak.bytes = simulation.peak;
  // A drop stands for what is live before the first moment.
  const Action& action = everything.actions[simulation.peak_action];
  peak.moment = action.kind == Action::Kind::run ? action.target : 0;
  peak.other = trace.moments[peak.moment].other;
  peak.workspace = trace.workspace(peak.moment);
  peak.values = resident_at(trace, everything, simulation.peak_action);
  sort_by_bytes(trace, peak.values);
  return peak;
}

void find_fixed(const Trace& trace, Inspection& inspection) {
  std::vector<char> recomputable(trace.values.size(), 0);
  for (const Operator& op : trace.operators) {
    if (!op.replayable) continue;
    for (const Id v : op.outputs) recomputable[v] = 1;
  }
  for (const Tier& tier : trace.tiers) {
    for (const TierEntry& entry : tier.entries) recomputable[entry.value] = 1;
  }
  for (Id v = 0; v < trace.value_count(); ++v) {
    if (recomputable[v]) continue;
    inspection.fixed.push_back(v);
    inspection.fixed_bytes += trace.values[v].bytes;
  }
  sort_by_bytes(trace, inspection.fixed);
}

void count_everything(const Trace& trace, Inspection& inspection) {
  inspection.name = trace.name;
  inspection.moments = trace.moments.size();
  inspection.values = trace.values.size();
  for (const Value& value : trace.values) {
    inspection.value_bytes += value.bytes;
    if (value.maker) continue;
    ++inspection.outside;
    inspection.outside_bytes += value.bytes;
  }
  for (Id m = 0; m < trace.moment_count(); ++m) {
    inspection.largest_other = std::max(inspection.largest_other, trace.moments[m].other);
    if (!trace.is_event(m)) continue;
    ++inspection.events;
    inspection.event_cost += trace.cost(m);
  }
  inspection.operators = inspection.moments - inspection.events;
  inspection.cost = trace.total_cost();
}

}  // namespace

double Inspection::Candidate::worth(const Trace& trace) const {
  const double saved = static_cast<double>(trace.values[value].bytes) * unused;
  return recompute > 0 ? saved / recompute : std::numeric_limits<double>::infinity();
}

Inspection inspect(const Trace& trace) {
  Inspection inspection;
  count_everything(trace, inspection);
  const Plan everything = keep_everything(trace);
  inspection.keep_everything_peak = everything.budget;
  inspection.floor = floor_of(trace);
  inspection.floor_parts = parts_of_floor(trace, inspection.floor);
  inspection.peak = find_peak(trace, everything);
  find_fixed(trace, inspection);
  const auto peak_moment = inspection.peak ? std::optional(inspection.peak->moment) : std::nullopt;
  inspection.worth_most = Candidates(trace, peak_moment).best();
  return inspection;
}

}  // namespace reprise
