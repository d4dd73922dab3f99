#include "reprise/plan/revolve.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/chains/revolve_slots.h"
#include "reprise/trace/error.h"

namespace reprise {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t many = std::int64_t{1} << 62;

std::int64_t capped(Wide number) {
  return number < many ? static_cast<std::int64_t>(number) : many;
}

// The most layers that can be reversed with `slots` slots and no layer run more than `sweeps` times before it is taped:
// (slots + sweeps) over slots. 0 for -1 sweeps, 1 for none and for no slots.
std::int64_t reach(std::int64_t slots, std::int64_t sweeps) {
  if (sweeps < 0) return 0;
  const std::int64_t few = std::min(slots, sweeps);
  Wide result = 1;
  for (std::int64_t i = 1; i <= few; ++i) {
    result = result * (slots + sweeps - few + i) / i;
    if (result >= many) return many;
  }
  return static_cast<std::int64_t>(result);
}

// The number of sweeps that this many layers need: the smallest with reach(slots, sweeps) >= layers.
std::int64_t sweeps_for(std::int64_t layers, std::int64_t slots) {
  if (slots == 1) return std::max<std::int64_t>(layers - 1, 0);
  std::int64_t low = 0, high = 1;
  while (reach(slots, high) < layers) {
    low = high + 1;
    high *= 2;
  }
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (reach(slots, middle) >= layers) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

// How far to advance before the next state is stored. Any distance in this interval is optimal; the largest one stores
// last.
std::int64_t distance(std::int64_t layers, std::int64_t slots) {
  if (slots == 1) return layers - 1;
  const std::int64_t sweeps = sweeps_for(layers, slots);
  return std::max<std::int64_t>(1, std::min(reach(slots, sweeps - 1), layers - reach(slots - 1, sweeps - 1)));
}

class ScheduleBuilder {
 public:
  ChainSteps make(std::int32_t layers, std::int32_t slots) {
    steps_.reserve(
        static_cast<std::size_t>(std::min<std::int64_t>(revolve_steps(layers, slots), internal::most_steps)) * 2);
    if (layers > 0) pending_.push_back({Part::reverse, 0, layers, slots, false});
    while (!pending_.empty()) {
      const Part part = pending_.back();
      pending_.pop_back();
      switch (part.kind) {
        case Part::load: add(ChainStep::Kind::load, part.first); break;
        case Part::discard: add(ChainStep::Kind::discard, part.first); break;
        case Part::reverse: reverse(part); break;
      }
    }
    return std::move(steps_);
  }

 private:
  struct Part {
    enum Kind { reverse, load, discard } kind;
    std::int32_t first;   // the state it starts from
    std::int32_t layers;  // to reverse
    std::int32_t slots;   // free, the one that the starting state has or will have included
    bool stored;          // the starting state is stored already
  };

  void add(ChainStep::Kind kind, std::int32_t at) { steps_.push_back({kind, at, 0}); }

  // Starting from a state that is there. What comes later is pushed first.
  void reverse(const Part& part) {
    if (part.layers == 1) {
      add(ChainStep::Kind::tape, part.first + 1);
      add(ChainStep::Kind::backward, part.first + 1);
      return;
    }
    if (!part.stored) {
      add(ChainStep::Kind::store, part.first);
      pending_.push_back({Part::discard, part.first, 0, 0, false});
    }
    const auto advance = static_cast<std::int32_t>(distance(part.layers, part.slots));
    const std::int32_t middle = part.first + advance;
    for (std::int32_t at = part.first + 1; at <= middle; ++at) add(ChainStep::Kind::advance, at);
    pending_.push_back({Part::reverse, part.first, advance, part.slots, true});
    pending_.push_back({Part::load, part.first, 0, 0, false});
    pending_.push_back({Part::reverse, middle, part.layers - advance, part.slots - 1, false});
  }

  ChainSteps steps_;
  std::vector<Part> pending_;
};

void check_numbers(std::int64_t layers, std::int64_t slots) {
  if (layers < 0) throw BadOption(fmt::format("layers is {}: it cannot be negative", layers));
  if (slots < 1) throw BadOption(fmt::format("slots is {}: it has to be at least 1", slots));
}

}  // namespace

std::int64_t revolve_steps(std::int64_t layers, std::int64_t slots) {
  check_numbers(layers, slots);
  if (layers == 0) return 0;
  const std::int64_t sweeps = sweeps_for(layers, slots);
  return capped(static_cast<Wide>(sweeps + 1) * layers - reach(slots + 1, sweeps - 1));
}

ChainSteps revolve_schedule(std::int32_t layers, std::int32_t slots) {
  check_numbers(layers, slots);
  return ScheduleBuilder().make(layers, slots);
}

}  // namespace reprise
