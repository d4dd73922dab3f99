#include <fmt/format.h>

#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"

namespace reprise {
namespace {

void check_remembered(std::span<const std::int32_t> remembered, std::int32_t layers, std::int32_t slots) {
  if (layers < 0) throw BadOption(fmt::format("layers is {}: it cannot be negative", layers));
  if (remembered.empty()) throw BadOption("remembered is empty: state 0 has to be among the remembered states");
  if (remembered.front() != 0) {
    throw BadOption(fmt::format("remembered starts with state {}: it has to start with 0", remembered.front()));
  }
  for (std::size_t i = 1; i < remembered.size(); ++i) {
    if (remembered[i - 1] < remembered[i]) continue;
    throw BadOption(fmt::format("remembered has state {} before state {}: they have to be ascending", remembered[i - 1],
                                remembered[i]));
  }
  if (remembered.back() > layers) {
    throw BadOption(fmt::format("remembered ends with state {}: there are only {} layers", remembered.back(), layers));
  }
  if (slots < 0 || static_cast<std::size_t>(slots) < remembered.size()) {
    throw BadOption(fmt::format("slots is {}: {} states are remembered", slots, remembered.size()));
  }
}

// Backward of the layers from `end` down to the one after state `first`, which is remembered in one of the slots.
void reverse_stretch(ChainSteps& steps, std::int32_t first, std::int32_t end, std::int32_t slots) {
  using Kind = ChainStep::Kind;
  if (end - first == 1) {
    steps.insert(steps.end(), {{Kind::load, first}, {Kind::tape, end}, {Kind::backward, end}, {Kind::discard, first}});
    return;
  }
  // Revolve begins with storing its initial state and ends with discarding it. Here it is stored already.
  const ChainSteps inside = revolve_schedule(end - first, slots);
  steps.push_back({Kind::load, first});
  for (std::size_t i = 1; i < inside.size(); ++i) steps.push_back({inside[i].kind, inside[i].at + first});
}

}  // namespace

ChainSteps reverse_from(std::span<const std::int32_t> remembered, std::int32_t layers, std::int32_t slots) {
  check_remembered(remembered, layers, slots);
  ChainSteps steps;
  std::int32_t end = layers;
  for (std::size_t i = remembered.size(); i-- > 0;) {
    const std::int32_t first = remembered[i];
    if (first == layers) {
      steps.push_back({ChainStep::Kind::discard, first});
    } else {
      reverse_stretch(steps, first, end, slots - static_cast<std::int32_t>(i));
      end = first;
    }
  }
  return steps;
}

}  // namespace reprise
