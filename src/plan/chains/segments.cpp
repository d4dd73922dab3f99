#include "reprise/plan/segments.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/first_backward_moment.h"
#include "plan/planners.h"
#include "plan/search/recomputer.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;

// ---- the stretches --------------------------------------------------------------------------------------------------

Segments Segments::uniform(Id operators, Id segments) {
  if (operators < 0) throw BadOption(fmt::format("operators is {}: it cannot be negative", operators));
  if (segments < 0) throw BadOption(fmt::format("segments is {}: it cannot be negative", segments));
  if (operators == 0 || segments == 0) return {operators, {}};
  if (segments > operators) {
    throw BadOption(fmt::format("segments is {}: there are only {} operators to split", segments, operators));
  }
  const Id length = operators / segments;
  std::vector<Stretch> ranges;
  for (Id s = 0; s < segments; ++s) ranges.push_back({s * length, s * length + length - 1});
  ranges.back().last = operators - 1;
  return {operators, std::move(ranges)};
}

Segments Segments::every(Id operators, Id length) {
  if (length <= 0) throw BadOption(fmt::format("every is {}: it has to be at least 1", length));
  std::vector<Stretch> ranges;
  for (Id first = 0; first < operators; first += std::min(length, operators - first)) {
    ranges.push_back({first, first + std::min(length, operators - first) - 1});
  }
  return {operators, std::move(ranges)};
}

Segments::Segments(Id operators, std::vector<Stretch> ranges) : operators_(operators) {
  for (const Stretch& range : ranges) {
    if (range.first > range.last) {
      throw BadOption(fmt::format("range {}..{} is reversed", range.first, range.last));
    }
    if (range.first < 0 || range.last >= operators) {
      throw BadOption(
          fmt::format("range {}..{} is not within the operators 0..{}", range.first, range.last, operators - 1));
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
  for (const Stretch& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

std::optional<std::size_t> Segments::segment_of(Id op) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), op,
                                      [](Id wanted, const Stretch& range) { return wanted < range.first; });
  if (after == ranges_.begin() || op > std::prev(after)->last) return std::nullopt;
  return static_cast<std::size_t>(std::prev(after) - ranges_.begin());
}

std::vector<bool> Segments::mask() const {
  std::vector<bool> result(operators_, false);
  for (const Stretch& range : ranges_) {
    std::fill(result.begin() + range.first, result.begin() + range.last + 1, true);
  }
  return result;
}

// ---- the plan -------------------------------------------------------------------------------------------------------

namespace {

constexpr Id no_segment = -1;

// By moment: the segment it is in. Moments of backward are in none.
std::vector<Id> segment_of_moments(const Trace& trace, const Segments& segments, Id first_backward) {
  std::vector<Id> result(trace.moments.size(), no_segment);
  Id position = 0;
  for (Id m = 0; m < first_backward; ++m) {
    if (!trace.moments[m].runs) continue;
    if (const auto segment = segments.segment_of(position++)) result[m] = static_cast<Id>(*segment);
  }
  return result;
}

// Returns whether a value stays inside the segment it is made in until forward ends, and can be evicted there.
bool stays_inside(const Trace& trace, const Timeline& timeline, const std::vector<Id>& segment_of, Id first_backward,
                  Id value) {
  const Id made = timeline.made_at(value);
  if (made == nowhere || segment_of[made] == no_segment) return false;
  const auto& held = trace.values[value].held;
  if (held && held->last >= first_backward) return false;
  for (const Id m : timeline.needed_at(value)) {
    if (m < first_backward && segment_of[m] != segment_of[made]) return false;
  }
  return true;
}

// Returns the last moment of forward that needs the value, or the one that makes it.
Id last_forward_use(const Timeline& timeline, Id first_backward, Id value) {
  Id last = timeline.made_at(value);
  for (const Id m : timeline.needed_at(value)) {
    if (m < first_backward) last = m;
  }
  return last;
}

}  // namespace

SegmentPlan::SegmentPlan(const Trace& trace, const Segments& segments, Bytes budget)
    : evicted_(trace.values.size(), false) {
  if (segments.operators() > static_cast<Id>(trace.operators.size())) {
    throw BadOption(fmt::format("the segments are over {} operators, the trace has {}", segments.operators(),
                                trace.operators.size()));
  }
  const Timeline timeline(trace);
  const Id first_backward = first_backward_moment(trace, timeline);
  const std::vector<Id> segment_of = segment_of_moments(trace, segments, first_backward);
  Recomputer recomputer(trace, timeline);

  std::vector<std::vector<Id>> evicted_in(segments.ranges().size()), evicted_after(first_backward);
  for (Id v = 0; v < trace.value_count(); ++v) {
    if (!recomputer.can_recompute(v) || !stays_inside(trace, timeline, segment_of, first_backward, v)) continue;
    evicted_[v] = true;
    evicted_in[segment_of[timeline.made_at(v)]].push_back(v);
    evicted_after[last_forward_use(timeline, first_backward, v)].push_back(v);
  }

  for (Id m = 0; m < first_backward; ++m) {
    recomputer.run_next();
    for (const Id v : evicted_after[m]) recomputer.evict(v);
  }
  // The first need of backward for something in a segment brings back all of the segment that is still needed.
  std::vector<Id> wanted;
  for (Id m = first_backward; m < trace.moment_count(); ++m) {
    for (const Id missing : recomputer.missing(m)) {
      if (!evicted_[missing] || recomputer.at_hand(missing)) continue;
      wanted.clear();
      for (const Id v : evicted_in[segment_of[timeline.made_at(missing)]]) {
        if (timeline.last_needed(v) >= m && !recomputer.at_hand(v)) wanted.push_back(v);
      }
      recomputer.recompute(wanted);
    }
    recomputer.run_next();
  }
  plan_ = recomputer.finish({}, budget);
}

Id forward_operators(const Trace& trace) {
  const Id first_backward = first_backward_moment(trace);
  return static_cast<Id>(std::count_if(trace.moments.begin(), trace.moments.begin() + first_backward,
                                       [](const Moment& moment) { return moment.runs.has_value(); }));
}

// ---- the planners ---------------------------------------------------------------------------------------------------

namespace internal {

std::optional<Plan> plan_segments(const Trace& trace, const PlanOptions& options) {
  const auto [count, ranges] = own_options<SegmentsPlanner>(options);
  if (count && !ranges.empty()) {
    throw BadOption("planner segments takes a number of segments or ranges, not both");
  }
  if (!count && ranges.empty()) {
    throw BadOption("planner segments needs the number of segments, or ranges");
  }
  const Id operators = forward_operators(trace);
  const Segments segments = count ? Segments::uniform(operators, *count) : Segments(operators, ranges);
  return SegmentPlan(trace, segments, options.budget).plan();
}

std::optional<Plan> plan_every(const Trace& trace, const PlanOptions& options) {
  const Segments segments = Segments::every(forward_operators(trace), own_options<EveryPlanner>(options).operators);
  return SegmentPlan(trace, segments, options.budget).plan();
}

}  // namespace internal
}  // namespace reprise
