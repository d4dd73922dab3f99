// The rules of the interpreter for the plan of a chain whose actions come one after the other.
//
// `simulate` looks at a trace and a plan as a whole, which for a chain of ten million layers are gigabytes. Here the
// trace follows from the number of layers, and what is kept is what is resident. The rules are those of simulate.h; of
// bytes and costs nothing is known, and there are no tiers.
#pragma once

#include "reprise/simulate/simulate.h"
#include "reprise/trace/plan.h"
#include "trace/sparse_table.h"

namespace reprise::internal {

class ChainRules {
 public:
  ChainRules(Id layers, bool tapes) : layers_(layers), tapes_(tapes) { resident_.set(0, 1); }

  // Throws BadOption with the rule if this action breaks one.
  void execute(const Action&);
  // Throws BadOption if a moment has not run.
  void end() const;

 private:
  void forward(Id layer);
  void require_resident(Id value, const char* why) const;
  [[noreturn]] void fail(Rule, const std::string& why) const;
  [[nodiscard]] Id state_value(Id state) const { return tapes_ ? 2 * state : state; }
  [[nodiscard]] Id values() const { return state_value(layers_) + 1; }

  const Id layers_;
  const bool tapes_;
  Action action_;               // in hand
  Id next_ = 0;                 // the moment to run next
  SparseTable<char> resident_;  // by value
};

}  // namespace reprise::internal
