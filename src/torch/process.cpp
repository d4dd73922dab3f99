#include "torch/process.h"

#include "torch/open_steps.h"
#include "torch/operators.h"
#include "torch/place.h"
#include "torch/planning.h"
#include "torch/recordings.h"
#include "torch/value_tiers.h"

namespace reprise::internal {

Process::Process()
    : places_(std::make_unique<Places>()),
      operators_(std::make_unique<OperatorTable>()),
      planning_(std::make_unique<Planning>()),
      recordings_(std::make_unique<Recordings>()),
      steps_(std::make_unique<OpenSteps>()),
      tiers_(std::make_unique<ValueTiers>()) {}
Process::~Process() = default;

Process& process() {
  static auto& one = *new Process;
  return one;
}

}  // namespace reprise::internal
