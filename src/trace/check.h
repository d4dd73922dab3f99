// What the checks of traces and of plans share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/trace/plan.h"
#include "reprise/trace/trace.h"

namespace reprise::internal {

// Where a number stands in a trace, turned into text only for an error.
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

// Checks tiers, which have the same shape in traces and in plans. `values` is the number of values, if known.
void check_tiers(const std::vector<Tier>& tiers, std::optional<std::size_t> values, Totals& totals);

// Checks what a plan without its trace allows to check, and throws BadInput. The interpreter decides which actions are
// allowed.
void check(const Plan& plan);

}  // namespace reprise::internal
