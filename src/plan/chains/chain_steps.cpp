#include "reprise/plan/chain_steps.h"

#include <algorithm>

namespace reprise {

ChainSteps all_steps(ChainStepSource& source) {
  ChainSteps steps;
  while (const auto step = source.next()) steps.push_back(*step);
  return steps;
}

std::size_t forward_steps(const ChainSteps& steps) {
  return static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), [](const ChainStep& step) {
    return step.kind == ChainStep::Kind::advance || step.kind == ChainStep::Kind::tape;
  }));
}

}  // namespace reprise
