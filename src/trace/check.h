// What the checks of traces and of plans share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// Where a number stands in a trace, turned into text only when there is something to say about it.
struct PlaceInTrace {
  const char* list = "";  // "operators"
  std::size_t index = 0;
  const char* field = nullptr;           // "inputs"; none: the record itself
  std::optional<std::size_t> item = {};  // of a field that is a list
  [[nodiscard]] std::string text() const;
};

// Adds up bytes and costs and throws BadInput when one of them, or all together, are more than a trace can have. The
// place in the error is that of the largest one so far: where people should look first.
class Totals {
 public:
  void add_bytes(Bytes bytes, const PlaceInTrace& place);
  void add_cost(double cost, const PlaceInTrace& place);

 private:
  Bytes bytes_ = 0, largest_bytes_ = -1;
  double cost_ = 0, largest_cost_ = -1;
  PlaceInTrace largest_bytes_place_, largest_cost_place_;
};

// Tiers have the same shape in traces and in plans. `values`: how many there are, if that is known.
void check_tiers(const std::vector<Tier>& tiers, std::optional<std::size_t> values, Totals& totals);

// What can be said about a plan without its trace. Throws BadInput; which actions are allowed is the interpreter's.
void check(const Plan& plan);

}  // namespace reprise::internal
