// Policies: saying by hand, operator by operator, what is kept, forgotten or packed.
//
//   session.name(*model);
//   SessionOptions{.budget = 2_GiB, .policy = [](const PolicyOperator& op) {
//     return op.module.starts_with("encoder.") ? Choice::forget : Choice::decide;
//   }}
//
// A policy is asked once for every operator of a new trace, right after it has run, and what it says holds for all
// values that the operator makes and backward needs. What it does not decide, the planner does.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "reprise/store/array.h"
#include "reprise/trace/trace.h"

namespace reprise {

struct PolicyOperator {
  std::string_view name;          // with its overload: "aten::mul.Tensor"
  std::vector<Shape> shapes;      // of its results
  Bytes bytes = 0;                // of the values it made
  std::optional<double> seconds;  // of CPU time, if it was measured
  bool random = false;            // it draws from a generator
  std::string_view module;        // whose parameter it reads, as Session::name was told; empty: it reads none

  // "aten::mul" for "aten::mul.Tensor".
  [[nodiscard]] std::string_view plain_name() const { return name.substr(0, name.find('.')); }
};

enum class Choice : unsigned char {
  decide,  // the planner does
  keep,    // never forgotten; a budget that cannot be kept because of it is a BudgetError that says by how much
  forget,  // always, as soon as the program lets go of it
  pack,    // without loss, at once; what does not pack is for the planner to decide
};

// May be called from any thread that has a step open. If it throws, the planner decides, and Summary::last_divergences
// says so.
using Policy = std::function<Choice(const PolicyOperator&)>;

namespace policy {

// Matrix products, convolutions and attention are kept: they cost most for what they hold.
[[nodiscard]] Policy keep_products();
// What was drawn at random is packed: masks of dropout are bits then.
[[nodiscard]] Policy pack_random();
// What takes less than this for each mebibyte it makes is forgotten. Throws BadOption for a negative number.
[[nodiscard]] Policy forget_cheap(double seconds_per_mebibyte = 0.001);
// The first of these that decides.
[[nodiscard]] Policy first_of(std::vector<Policy>);

}  // namespace policy
}  // namespace reprise
