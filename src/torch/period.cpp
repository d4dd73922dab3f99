#include "torch/period.h"

#include <algorithm>

namespace reprise {
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
    return r.value == s.value && r.defined == s.defined && (!r.defined || same_geometry(a, r.geometry, b, s.geometry));
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

}  // namespace

Id common_operators(const Recipes& a, const Recipes& b) {
  const auto most = static_cast<Id>(std::min(a.operators.size(), b.operators.size()));
  Id op = 0;
  while (op < most && same_operator(a, b, op)) ++op;
  return op;
}

}  // namespace reprise
