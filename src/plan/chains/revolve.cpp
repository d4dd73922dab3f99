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

// Returns the most layers that can be reversed with `slots` slots and no layer run more than `sweeps` times before it
// is taped: (slots + sweeps) over slots. 0 for -1 sweeps, 1 for none and for no slots.
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

// Returns the number of sweeps that this many layers need: the smallest with reach(slots, sweeps) >= layers.
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

// reach * factor / divisor, for a division that leaves no rest.
std::int64_t scaled(std::int64_t reach, std::int64_t factor, std::int64_t divisor) {
  if (reach < std::int64_t{1} << 31) return reach * factor / divisor;
  return static_cast<std::int64_t>(static_cast<Wide>(reach) * factor / divisor);
}

class RevolveSource final : public ChainStepSource {
 public:
  RevolveSource(std::int32_t layers, std::int32_t slots) {
    if (layers == 0) return;
    const std::int64_t sweeps = sweeps_for(layers, slots);
    const Part part{Part::reverse, 0, layers, slots, false, static_cast<std::int32_t>(sweeps), reach(slots, sweeps)};
    pending_.push_back(part);
  }

  std::optional<ChainStep> next() override {
    ChainStep step;
    return fill({&step, 1}) > 0 ? std::optional(step) : std::nullopt;
  }

  std::size_t fill(std::span<ChainStep> room) override {
    using Kind = ChainStep::Kind;
    std::size_t count = 0;
    while (count < room.size() && !pending_.empty()) {
      Part& part = pending_.back();
      if (part.kind == Part::advance) {
        const std::size_t some = std::min(room.size() - count, static_cast<std::size_t>(part.layers));
        std::int32_t at = part.first;
        for (ChainStep& step : room.subspan(count, some)) step = {Kind::advance, ++at, 0};
        count += some;
        part.first = at;
        part.layers -= static_cast<std::int32_t>(some);
        if (part.layers == 0) pending_.pop_back();
        continue;
      }
      const Part now = part;
      pending_.pop_back();
      switch (now.kind) {
        case Part::advance: break;
        case Part::load: room[count++] = {Kind::load, now.first, 0}; break;
        case Part::discard: room[count++] = {Kind::discard, now.first, 0}; break;
        case Part::backward: room[count++] = {Kind::backward, now.first, 0}; break;
        case Part::reverse:
          if (now.layers == 1) {
            pending_.push_back({Part::backward, now.first + 1});
            room[count++] = {Kind::tape, now.first + 1, 0};
          } else if (now.layers <= now.slots + 1 && room.size() - count >= 6 * static_cast<std::size_t>(now.layers)) {
            count += reverse_at_once(now, room.subspan(count));
          } else {
            if (!now.stored) room[count++] = {Kind::store, now.first, 0};
            reverse(now);
          }
          break;
      }
    }
    return count;
  }

 private:
  struct Part {
    enum Kind { reverse, advance, backward, load, discard } kind;
    std::int32_t first;       // the state it starts from; the layer of backward
    std::int32_t layers = 0;  // to reverse, or to advance through
    std::int32_t slots = 0;   // free, the one that the starting state has or will have included
    bool stored = false;      // the starting state is stored already
    // Of what is reversed: as many sweeps as are enough for the layers, or more, and the reach of the slots with them.
    std::int32_t sweeps = 0;
    std::int64_t reach = 0;
  };

  // There are slots for all states, so that each is stored once. Returns the number of steps, at most 6 for each layer.
  [[nodiscard]] static std::size_t reverse_at_once(const Part& part, std::span<ChainStep> room) {
    using Kind = ChainStep::Kind;
    ChainStep* to = room.data();
    const std::int32_t end = part.first + part.layers;
    for (std::int32_t at = part.first; at + 1 < end; ++at) {
      if (at > part.first || !part.stored) *to++ = {Kind::store, at, 0};
      *to++ = {Kind::advance, at + 1, 0};
    }
    for (std::int32_t at = end; at > part.first; --at) {
      if (at < end) *to++ = {Kind::load, at - 1, 0};
      *to++ = {Kind::tape, at, 0};
      *to++ = {Kind::backward, at, 0};
      const bool stays = at == end || (at == part.first + 1 && part.stored);
      if (!stays) *to++ = {Kind::discard, at - 1, 0};
    }
    return static_cast<std::size_t>(to - room.data());
  }

  // Starting from a state that is there and stored. What comes later is pushed first.
  void reverse(Part part) {
    if (!part.stored) pending_.push_back({Part::discard, part.first});
    const std::int32_t ahead = distance(part), middle = part.first + ahead, left = part.layers - ahead;
    const std::int64_t reach_of_left =
        part.slots == 1 ? 1 : scaled(part.reach, part.slots, std::int64_t{part.slots} + part.sweeps);
    pending_.push_back({Part::reverse, part.first, ahead, part.slots, true, part.sweeps, part.reach});
    pending_.push_back({Part::load, part.first});
    pending_.push_back({Part::reverse, middle, left, part.slots - 1, false, part.sweeps, reach_of_left});
    pending_.push_back({Part::advance, part.first, ahead});
  }

  // How far to advance before the next state is stored. Any distance in an interval is optimal; the largest one, which
  // this is, stores last. The numbers of the part are made those of as many sweeps as are needed. Neighbours of a
  // binomial coefficient follow from it: reach(slots, sweeps - 1) is reach * sweeps / (slots + sweeps).
  [[nodiscard]] static std::int32_t distance(Part& part) {
    if (part.slots == 1) return part.layers - 1;
    const std::int64_t slots = part.slots;
    std::int64_t less = scaled(part.reach, part.sweeps, slots + part.sweeps);
    while (less >= part.layers) {
      part.reach = less;
      --part.sweeps;
      less = scaled(part.reach, part.sweeps, slots + part.sweeps);
    }
    const std::int64_t with_one_slot_less = scaled(less, slots, slots + part.sweeps - 1);
    return static_cast<std::int32_t>(std::max<std::int64_t>(1, std::min(less, part.layers - with_one_slot_less)));
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
