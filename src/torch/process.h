// What there is once in a process: its parts, from the one that needs nothing to those that need others.
//
// They are made in this order when the library is loaded, and never destroyed: tensors may be freed, and graphs of
// global objects end, after all static objects are gone. When the process exits, planning is ended (planning.h). At a
// fork all locks are taken (forks.h). A test may make another Process, or a single part.
#pragma once

#include <memory>

namespace reprise::internal {

class OpenSteps;
class OperatorTable;
class Places;
class Planning;
class Recordings;
class ValueTiers;

class Process {
 public:
  Process();
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] Places& places() { return *places_; }
  [[nodiscard]] OperatorTable& operators() { return *operators_; }
  [[nodiscard]] Planning& planning() { return *planning_; }
  [[nodiscard]] Recordings& recordings() { return *recordings_; }
  [[nodiscard]] OpenSteps& steps() { return *steps_; }
  [[nodiscard]] ValueTiers& tiers() { return *tiers_; }

 private:
  const std::unique_ptr<Places> places_;
  const std::unique_ptr<OperatorTable> operators_;
  const std::unique_ptr<Planning> planning_;
  const std::unique_ptr<Recordings> recordings_;
  const std::unique_ptr<OpenSteps> steps_;
  const std::unique_ptr<ValueTiers> tiers_;
};

// This one.
[[nodiscard]] Process& process();

}  // namespace reprise::internal
