// Policies choose by hand, operator by operator, what is kept, evicted or packed.
//
//   session.label_modules(*model);
//   SessionOptions{.budget = 2_GiB, .policy = [](const PolicyOperator& op) {
//     return op.module.starts_with("encoder.") ? Choice::evict : Choice::automatic;
//   }}
//
// A policy is called once for every operator of a new trace, right after the operator has run. Its choice holds for all
// values that the operator makes and backward needs. The planner decides about the others.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/export.h"
#include "reprise/store/array.h"
#include "reprise/trace/trace.h"

namespace reprise {

// What a policy knows about an operator.
struct PolicyOperator {
  std::string_view name;          // with its overload: "aten::mul.Tensor"
  std::vector<Shape> shapes;      // of its results
  Bytes bytes = 0;                // of the values it made
  std::optional<double> seconds;  // of CPU time, if it was measured
  bool random = false;            // true if it draws from a generator
  std::string_view module;  // the module whose parameter it reads, see Session::label_modules; empty: it reads none

  // Returns the name without its overload: "aten::mul" for "aten::mul.Tensor".
  [[nodiscard]] std::string_view plain_name() const { return name.substr(0, name.find('.')); }
};

enum class Choice : unsigned char {
  automatic,  // the planner decides
  keep,       // never evicted; if that breaks the budget, BudgetError names the bytes
  evict,      // always evicted, as soon as the program releases it
  pack,       // packed without loss, at once; the planner decides about values that do not pack
};

// A policy may be called from any thread that has a step open. If it throws, the planner decides, and
// Summary::last_notes has the reason.
using Policy = std::function<Choice(const PolicyOperator&)>;

namespace policy {

// Keeps matrix products, convolutions and attention, which cost most for the bytes they hold.
[[nodiscard]] REPRISE_EXPORT Policy keep_products();
// Packs what was drawn at random: masks of dropout become bits.
[[nodiscard]] REPRISE_EXPORT Policy pack_random();
// Evicts the results of operators that take less than this for each mebibyte they make. Throws BadOption for a
// negative number.
[[nodiscard]] REPRISE_EXPORT Policy evict_cheap(double seconds_per_mebibyte = 0.001);
// Chooses by name: of an operator ("aten::mm" for all its overloads, "aten::mul.Tensor" for one of them) or, with a
// star at the end, of modules ("encoder.*"). Operators come first; the first rule that fits holds, and where none does,
// `otherwise`, if there is one. Throws BadOption for an operator that there is not, with the names that are near, and
// for one that a session never asks about, because it records the operators that it is composed of ("aten::linear") or
// because it makes no values.
[[nodiscard]] REPRISE_EXPORT Policy by_names(const std::vector<std::pair<std::string, Choice>>& rules,
                                             Policy otherwise = {});
// Returns the choice of the first of these policies that decides.
[[nodiscard]] REPRISE_EXPORT Policy first_of(std::vector<Policy>);

}  // namespace policy
}  // namespace reprise
