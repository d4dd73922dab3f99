#include "reprise/plan/revolve.h"

#include <fmt/format.h>

#include <algorithm>

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

class RevolveSource : public ChainStepSource {
 public:
  RevolveSource(std::int32_t layers, std::int32_t slots) {
    if (layers > 0) pending_.push_back({Part::reverse, 0, layers, slots, false});
  }

  std::optional<ChainStep> next() override {
    if (pending_.empty()) return std::nullopt;
    Part& part = pending_.back();
    if (part.kind == Part::advance && part.layers > 0) {
      --part.layers;
      return ChainStep{ChainStep::Kind::advance, ++part.first, 0};
    }
    const Part now = part;
    pending_.pop_back();
    switch (now.kind) {
      case Part::advance: return next();
      case Part::load: return ChainStep{ChainStep::Kind::load, now.first, 0};
      case Part::discard: return ChainStep{ChainStep::Kind::discard, now.first, 0};
      case Part::backward: return ChainStep{ChainStep::Kind::backward, now.first, 0};
      case Part::reverse: break;
    }
    return reverse(now);
  }

 private:
  struct Part {
    enum Kind { reverse, advance, backward, load, discard } kind;
    std::int32_t first;   // the state it starts from; the layer of backward
    std::int32_t layers;  // to reverse, or to advance through
    std::int32_t slots;   // free, the one that the starting state has or will have included
    bool stored;          // the starting state is stored already
  };

  // Starting from a state that is there. What comes later is pushed first.
  std::optional<ChainStep> reverse(const Part& part) {
    if (part.layers == 1) {
      pending_.push_back({Part::backward, part.first + 1, 0, 0, false});
      return ChainStep{ChainStep::Kind::tape, part.first + 1, 0};
    }
    if (!part.stored) pending_.push_back({Part::discard, part.first, 0, 0, false});
    const auto ahead = static_cast<std::int32_t>(distance(part.layers, part.slots));
    const std::int32_t middle = part.first + ahead;
    pending_.push_back({Part::reverse, part.first, ahead, part.slots, true});
    pending_.push_back({Part::load, part.first, 0, 0, false});
    pending_.push_back({Part::reverse, middle, part.layers - ahead, part.slots - 1, false});
    pending_.push_back({Part::advance, part.first, ahead, 0, false});
    if (!part.stored) return ChainStep{ChainStep::Kind::store, part.first, 0};
    return next();
  }

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
  return all_steps(*revolve_source(layers, slots));
}

std::unique_ptr<ChainStepSource> revolve_source(std::int32_t layers, std::int32_t slots) {
  check_numbers(layers, slots);
  return std::make_unique<RevolveSource>(layers, slots);
}

}  // namespace reprise
