#include "reprise/plan/chain_steps.h"

#include <algorithm>

namespace reprise {

std::size_t ChainStepSource::fill(std::span<ChainStep> room) {
  std::size_t count = 0;
  for (; count < room.size(); ++count) {
    const auto step = next();
    if (!step) break;
    room[count] = *step;
  }
  return count;
}

ChainSteps all_steps(ChainStepSource& source) {
  constexpr std::size_t some = 512;
  ChainSteps steps;
  for (std::size_t had = 0, got = some; got == some; had += got) {
    steps.resize(had + some);
    got = source.fill(std::span(steps).subspan(had));
    steps.resize(had + got);
  }
  return steps;
}

std::size_t forward_steps(const ChainSteps& steps) {
  return static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), [](const ChainStep& step) {
    return step.kind == ChainStep::Kind::advance || step.kind == ChainStep::Kind::tape;
  }));
}

}  // namespace reprise
