// Growth: what a trace would be if the program had run at another size, of its batch or of its sequences.
//
//   const Growth growth({{8, read_trace("8.json")}, {16, read_trace("16.json")}});
//   const Trace larger = growth.at(64);
//
// Traces of one program at several sizes have the same operators, values and moments; they differ in bytes and costs.
// Each of these numbers is continued by itself, from what it was at the recorded sizes. From two sizes all of them are
// straight lines, which is what a batch wants; from three or more, those that are no straight line are parabolas, which
// is what the length of sequences wants, where attention is.
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise {

struct SizedTrace {
  std::int64_t size = 0;  // samples of a batch or tokens of a sequence
  Trace trace;
};

class REPRISE_EXPORT Growth {
 public:
  // Two traces or more, of different sizes above zero, in any order. Throws BadInput that names the first operator in
  // which they differ if they are not of the same structure.
  explicit Growth(std::vector<SizedTrace> recorded);

  // Returns the trace of this size: a recorded one as it is, or a prediction. Bytes that grow by the same amount with
  // every unit of size are exact up to the 64 bytes that allocations are rounded to; no number is smaller than at the
  // largest recorded size if this one is larger. A tier has the values that it has in all of the traces. Throws
  // BadOption for a size that is not above zero, and BadInput if the numbers become larger than a trace can have.
  [[nodiscard]] Trace at(std::int64_t size) const;

  // Returns the recorded traces, by ascending size.
  [[nodiscard]] const std::vector<SizedTrace>& recorded() const { return recorded_; }

 private:
  std::vector<SizedTrace> recorded_;
};

}  // namespace reprise
