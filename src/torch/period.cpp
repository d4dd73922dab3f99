#include "torch/period.h"

#include <algorithm>

namespace reprise::internal {
namespace {

bool same_geometry(const Recipes& a, const Geometry& x, const Recipes& b, const Geometry& y) {
  const auto* const p = a.dims.data() + x.dims;
  return x.rank == y.rank && x.dtype == y.dtype && x.offset == y.offset &&
         std::equal(p, p + 2 * x.rank, b.dims.data() + y.dims);
}

bool same_operator(const Recipes& a, const Recipes& b, Id op) {
  const Recipe &x = a.operators[op], &y = b.operators[op];
  if (x.info != y.info || x.grad_mode != y.grad_mode || x.default_type != y.default_type) return false;
  const auto mine = a.arguments_of(op), theirs = b.arguments_of(op);
  if (mine.size() != theirs.size()) return false;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].kind != theirs[i].kind || mine[i].count != theirs[i].count) return false;
    if (mine[i].kind == Argument::Kind::constant &&
        !same_constant(a.constants[mine[i].first], b.constants[theirs[i].first])) {
      return false;
    }
  }
  const auto same_reference = [&](const Reference& r, const Reference& s) {
    return r.value == s.value && r.defined == s.defined && r.plain == s.plain &&
           (!r.defined || !r.plain || same_geometry(a, r.geometry, b, s.geometry));
  };
  const auto same_output = [&](const Output& r, const Output& s) {
    return r.value == s.value && r.result == s.result && r.element == s.element && r.write == s.write &&
           a.values[r.value].bytes == b.values[s.value].bytes;
  };
  const auto r = a.references_of(op), s = b.references_of(op);
  const auto o = a.outputs_of(op), q = b.outputs_of(op);
  return std::equal(r.begin(), r.end(), s.begin(), s.end(), same_reference) &&
         std::equal(o.begin(), o.end(), q.begin(), q.end(), same_output);
}

template <class T>
Bytes bytes_of(const std::vector<T>& all) {
  return static_cast<Bytes>(all.capacity() * sizeof(T));
}

constexpr Bytes behind = 32;  // what lies behind a small list, or a constant that is one

Bytes bytes_of(const Recipes& recipes) {
  return bytes_of(recipes.operators) + bytes_of(recipes.values) + bytes_of(recipes.arguments) +
         bytes_of(recipes.constants) + static_cast<Bytes>(recipes.constants.size()) * behind +
         bytes_of(recipes.references) + bytes_of(recipes.dims) + bytes_of(recipes.writes) + bytes_of(recipes.outputs);
}

Bytes bytes_of(const Observations& seen) {
  return bytes_of(seen.moments) + bytes_of(seen.needs) + bytes_of(seen.event_names) + bytes_of(seen.moment_of) +
         bytes_of(seen.released) + bytes_of(seen.forms) + bytes_of(seen.watched) +
         static_cast<Bytes>(seen.needs.size()) * behind;
}

Bytes bytes_of(const Script& schedule) {
  return bytes_of(schedule.steps) + bytes_of(schedule.after) + bytes_of(schedule.before) + bytes_of(schedule.events) +
         bytes_of(schedule.replays) + bytes_of(schedule.owned) + bytes_of(schedule.last_drop) +
         bytes_of(schedule.forms) + bytes_of(schedule.room) + static_cast<Bytes>(schedule.replays.size()) * 2 * behind;
}

}  // namespace

Bytes Period::bytes() const {
  Bytes bytes = bytes_of(*recipes) + bytes_of(seen) + bytes_of(costs) + bytes_of(other) + bytes_of(common);
  if (schedule) bytes += bytes_of(*schedule);
  if (plan) bytes += bytes_of(plan->actions);
  return bytes;
}

Id common_operators(const Recipes& a, const Recipes& b) {
  const auto most = static_cast<Id>(std::min(a.operators.size(), b.operators.size()));
  Id op = 0;
  while (op < most && same_operator(a, b, op)) ++op;
  return op;
}

}  // namespace reprise::internal
