#include "plan/chains/chain_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/chains/chain_cuts.h"
#include "plan/first_backward_moment.h"
#include "plan/search/recomputer.h"
#include "reprise/trace/error.h"
#include "trace/printable.h"

namespace reprise::internal {
namespace {

// ---- a chain of single moments --------------------------------------------------------------------------------------

// Returns the inputs of a moment that moments from `first` up to `end` make.
std::vector<Id> inputs_made_within(const Trace& trace, const Timeline& timeline, Id moment, Id first, Id end) {
  std::vector<Id> result;
  for (const Id v : trace.inputs(moment)) {
    if (timeline.made_at(v) >= first && timeline.made_at(v) < end) result.push_back(v);
  }
  return result;
}

std::string named(const Trace& trace, Id moment) {
  return fmt::format("moment {} '{}'", moment, printable(trace.label(moment)));
}

// Why a moment is no layer after the one before it; empty if it is.
std::string why_no_layer(const Trace& trace, const Timeline& timeline, Id moment) {
  if (moment == 0) return {};
  const auto states = inputs_made_within(trace, timeline, moment, 0, moment);
  if (states.empty()) return named(trace, moment) + " does not read the state before it";
  if (states.size() > 1) {
    return fmt::format("{} reads two states, values {} and {}", named(trace, moment), states[0], states[1]);
  }
  const Id made = timeline.made_at(states[0]);
  if (made == moment - 1) return {};
  return fmt::format("{} reads value {} of moment {}, not the state before it", named(trace, moment), states[0], made);
}

[[noreturn]] void fail(std::string_view planner, const std::string& why) {
  throw BadOption(fmt::format("planner {} needs a chain: {}", planner, why));
}

// Without events, backward starts with the first moment that is no layer. What follows has to look like backward: each
// moment reads at most one value that backward made.
std::string why_no_backward(const Trace& trace, const Timeline& timeline, Id first_backward) {
  for (Id m = first_backward; m < trace.moment_count(); ++m) {
    const auto gradients = inputs_made_within(trace, timeline, m, first_backward, m);
    if (gradients.size() > 1) {
      return fmt::format("{} reads values {} and {}", named(trace, m), gradients[0], gradients[1]);
    }
  }
  return {};
}

}  // namespace

ChainShape chain_of(const Trace& trace, const Timeline& timeline, std::string_view planner) {
  Id forward_end = 0;
  while (forward_end < trace.moment_count() && !trace.is_event(forward_end)) ++forward_end;
  const bool has_events = forward_end < trace.moment_count();
  Id first_backward = 0;
  while (first_backward < forward_end && why_no_layer(trace, timeline, first_backward).empty()) ++first_backward;
  const std::string at_end_of_forward =
      first_backward < forward_end ? why_no_layer(trace, timeline, first_backward) : "";
  if (has_events && !at_end_of_forward.empty()) fail(planner, at_end_of_forward);

  std::vector<Cut> cuts;
  for (Id m = 1; m < first_backward; ++m) cuts.push_back({m, inputs_made_within(trace, timeline, m, 0, m).front()});
  const auto [chain, out_of_order] = shape_chain(trace, timeline, first_backward, std::move(cuts));
  std::string misfit = has_events ? "" : why_no_backward(trace, timeline, first_backward);
  if (const auto& m = out_of_order; m && misfit.empty()) {
    misfit = fmt::format("{} needs value {} of layer {} where backward of layer {} is due", named(trace, m->moment),
                         m->value, m->layer, m->due);
  }
  if (misfit.empty()) return chain;
  fail(planner,
       has_events ? misfit : fmt::format("{}, and backward does not start there: {}", at_end_of_forward, misfit));
}

// ---- a chain of stretches -------------------------------------------------------------------------------------------

ChainShape coarse_chain_of(const Trace& trace, const Timeline& timeline) {
  const Id first_backward = first_backward_moment(trace, timeline);
  const auto can_recompute = recomputable(trace, timeline);
  // How many values cross the place before each moment, and the sum of their ids: the id itself if it is one value.
  std::vector<std::int64_t> count(first_backward + 1, 0), sum(first_backward + 1, 0);
  for (Id v = 0; v < trace.value_count(); ++v) {
    const Id made = timeline.made_at(v);
    const auto& held = trace.values[v].held;
    if (made == nowhere || made >= first_backward || !can_recompute[v] || (held && held->last >= first_backward))
      continue;
    Id last = made;
    for (const Id m : timeline.needed_at(v)) {
      if (m < first_backward) last = m;
    }
    ++count[made + 1], --count[last + 1];
    sum[made + 1] += v, sum[last + 1] -= v;
  }
  std::vector<Cut> cuts;
  std::optional<Id> state;
  for (Id m = 1; m < first_backward; ++m) {
    count[m] += count[m - 1];
    sum[m] += sum[m - 1];
    if (count[m] == 0) cuts.push_back({m, std::nullopt});
    if (count[m] != 1 || state == static_cast<Id>(sum[m])) continue;
    state = static_cast<Id>(sum[m]);
    cuts.push_back({m, state});
  }
  return shape_chain(trace, timeline, first_backward, std::move(cuts)).chain;
}

ChainShape joined(const Trace& trace, const Timeline& timeline, const ChainShape& chain, std::size_t layers) {
  const std::size_t count = chain.layers.size();
  if (count <= std::max<std::size_t>(layers, 1)) return chain;
  std::vector<Cut> cuts;
  for (std::size_t i = 1; i < count; ++i) {
    const bool starts_one = i * layers / count != (i - 1) * layers / count;
    if (starts_one) cuts.push_back({chain.layers[i].first, chain.layers[i - 1].state});
  }
  return shape_chain(trace, timeline, chain.first_backward, std::move(cuts)).chain;
}

}  // namespace reprise::internal
