// H-Revolve (Herrmann and Pallez 2020) plans a chain of equal layers whose states are remembered in several places of
// different speed: memory, disk.
//
// The cost counts forward steps that advance, one backward for each layer, and every write and read of a state. The
// forward step of each layer that tapes is part of its backward and not counted. The initial state is at hand but not
// stored, so that writing it is counted.
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/export.h"
#include "reprise/plan/chain_steps.h"

namespace reprise {

struct StorageLevel {
  std::int32_t slots = 0;  // the number of states it can remember
  double write_cost = 0;
  double read_cost = 0;
};

struct HRevolveProblem {
  std::int32_t layers = 0;
  std::vector<StorageLevel> levels;  // fastest first; the level of a step is the position in here
  double forward_cost = 1;           // of one layer
  double backward_cost = 1;          // of one layer, its taping forward step included
};

// Returns the cost of the best schedule among those that, once they leave a stretch of the chain to the faster levels,
// do not use slower ones inside it. Throws BadOption for negative numbers, and if there are several layers and no slot
// at all.
[[nodiscard]] REPRISE_EXPORT double hrevolve_cost(const HRevolveProblem&);

// Returns a schedule of exactly that cost.
//
// Both look at every number of slots of every level that costs something, one after the other, until more do not help,
// and for each at every length; the time for one of these is nearly constant, since costs are nearly convex in the
// length. 10^5 layers with 200 slots on disk take about a second.
[[nodiscard]] REPRISE_EXPORT ChainSteps hrevolve_schedule(const HRevolveProblem&);

}  // namespace reprise
