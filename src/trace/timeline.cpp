#include "reprise/trace/timeline.h"

#include <algorithm>

namespace reprise {
namespace {

// Lists of ids, one for each key, in one array: what `visit(emit)` emits as (key, id), in that order within a key.
template <typename Visit>
void bucket(std::size_t keys, Visit visit, std::vector<std::size_t>& first, std::vector<Id>& items) {
  first.assign(keys + 1, 0);
  visit([&](Id key, Id) { ++first[key + 1]; });
  for (std::size_t k = 0; k < keys; ++k) first[k + 1] += first[k];
  items.resize(first[keys]);
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  visit([&](Id key, Id item) { items[next[key]++] = item; });
}

}  // namespace

Timeline::Timeline(const Trace& trace)
    : moment_of_(trace.operators.size(), nowhere),
      made_at_(trace.values.size(), nowhere),
      taken_at_(trace.values.size(), nowhere) {
  for (Id m = 0; m < trace.moment_count(); ++m) {
    if (const auto& op = trace.moments[m].runs) moment_of_[*op] = m;
  }
  for (Id v = 0; v < trace.value_count(); ++v) {
    const Value& value = trace.values[v];
    if (value.maker) made_at_[v] = moment_of_[*value.maker];
    if (value.takes_over) taken_at_[*value.takes_over] = made_at_[v];
  }
  const auto each_hold = [&](auto moment_of_hold) {
    return [&trace, moment_of_hold](auto emit) {
      for (Id v = 0; v < trace.value_count(); ++v) {
        if (const auto& held = trace.values[v].held) emit(moment_of_hold(*held), v);
      }
    };
  };
  bucket(trace.moments.size(), each_hold([](const Stretch& held) { return held.first; }), starts_first_, starts_);
  bucket(trace.moments.size(), each_hold([](const Stretch& held) { return held.last; }), ends_first_, ends_);
  const auto each_need = [&](auto emit) {
    for (Id m = 0; m < trace.moment_count(); ++m) {
      const auto& inputs = trace.inputs(m);
      for (const Id v : inputs) emit(v, m);
      for (const Id v : hold_starts(m)) {
        const bool made_before = made_at_[v] != nowhere && made_at_[v] < m;
        if (made_before && std::find(inputs.begin(), inputs.end(), v) == inputs.end()) emit(v, m);
      }
    }
  };
  bucket(trace.values.size(), each_need, first_, needs_);
}

}  // namespace reprise
