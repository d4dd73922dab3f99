#include "reprise/plan/hrevolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plan/chains/lower_to_sum.h"
#include "plan/chains/revolve_slots.h"
#include "plan/planners.h"
#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Costs of reversing `length + 1` layers from a state that is at hand, by dynamic programming.
class Table {
 public:
  explicit Table(const HRevolveProblem& problem) : problem_(problem), longest_(problem.layers - 1) {
    levels_.resize(problem.levels.size());
    for (std::size_t k = 0; k < levels_.size(); ++k) fill(k);
  }

  // With `slots` free in level k and all slots of the faster levels: the state is not stored in level k, or it is, in
  // one of these slots.
  [[nodiscard]] double fresh(std::size_t k, std::int32_t slots, std::int32_t length) const {
    return row(k, slots).fresh[length];
  }
  [[nodiscard]] double stored(std::size_t k, std::int32_t slots, std::int32_t length) const {
    return row(k, slots).stored[length];
  }
  // The best without level k.
  [[nodiscard]] double faster(std::size_t k, std::int32_t length) const {
    if (k > 0) return fresh(k - 1, problem_.levels[k - 1].slots, length);
    return length == 0 ? problem_.backward_cost : infinite;
  }
  // Going `distance` ahead, reversing what lies beyond, coming back to the stored state and reversing up to there.
  [[nodiscard]] double split(std::size_t k, std::int32_t slots, std::int32_t length, std::int32_t distance) const {
    return way_there_and_back(k, distance) + stored(k, slots, distance - 1) + fresh(k, slots - 1, length - distance);
  }

 private:
  struct Row {
    std::vector<double> fresh, stored;  // by length
    bool operator==(const Row&) const = default;
  };

  [[nodiscard]] const Row& row(std::size_t k, std::int32_t slots) const {
    return levels_[k][std::min<std::size_t>(slots, levels_[k].size() - 1)];
  }

  [[nodiscard]] double way_there_and_back(std::size_t k, std::int32_t distance) const {
    return distance * problem_.forward_cost + problem_.levels[k].read_cost;
  }

  void fill(std::size_t k) {
    if (k == 0 && problem_.levels[0].read_cost == 0 && problem_.levels[0].write_cost == 0) return fill_as_revolve();
    Row without;
    for (std::int32_t length = 0; length <= longest_; ++length) without.fresh.push_back(faster(k, length));
    without.stored = without.fresh;
    levels_[k].push_back(without);
    for (std::int32_t slots = 1; slots <= problem_.levels[k].slots; ++slots) {
      Row next = one_more_slot(k, without, levels_[k].back());
      if (next == levels_[k].back()) break;  // nor do more slots help
      levels_[k].push_back(std::move(next));
    }
  }

  // A single level that costs nothing is Revolve's, whose costs have a closed form.
  void fill_as_revolve() {
    for (std::int32_t slots = 0; slots <= std::min(problem_.levels[0].slots, longest_); ++slots) {
      Row row;
      for (std::int32_t length = 0; length <= longest_; ++length) {
        const std::int64_t layers = length + 1;
        const bool can = slots > 0 || length == 0;
        const auto advances = static_cast<double>(length == 0 || !can ? 0 : revolve_steps(layers, slots) - layers);
        const double backward = static_cast<double>(layers) * problem_.backward_cost;
        row.fresh.push_back(can ? advances * problem_.forward_cost + backward : infinite);
      }
      row.stored = row.fresh;
      levels_[0].push_back(std::move(row));
    }
  }

  // Every finished length is pushed into all the longer ones that can come back to it.
  Row one_more_slot(std::size_t k, const Row& without, const Row& one_slot_less) const {
    Row result{without.fresh, without.fresh};
    for (std::int32_t length = 0; length < longest_; ++length) {
      const std::int32_t distance = length + 1;
      lower_to_sum(result.stored.data() + distance, one_slot_less.fresh.data(), longest_ - length,
                   way_there_and_back(k, distance) + result.stored[length]);
    }
    for (std::int32_t length = 0; length <= longest_; ++length) {
      const double written = problem_.levels[k].write_cost + result.stored[length];
      result.fresh[length] = std::min(without.fresh[length], written);
    }
    return result;
  }

  const HRevolveProblem& problem_;
  const std::int32_t longest_;
  std::vector<std::vector<Row>> levels_;  // by level and number of slots; the last row serves all larger numbers
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const HRevolveProblem& problem, const Table& table) : problem_(problem), table_(table) {}

  ChainSteps make() {
    const std::size_t slowest = problem_.levels.size() - 1;
    pending_.push_back({Part::fresh, slowest, problem_.levels[slowest].slots, problem_.layers - 1, 0});
    while (!pending_.empty()) {
      const Part part = pending_.back();
      pending_.pop_back();
      switch (part.kind) {
        case Part::fresh: from_fresh(part); break;
        case Part::stored: from_stored(part); break;
        case Part::load: add(ChainStep::Kind::load, part.first, part.level); break;
        case Part::discard: add(ChainStep::Kind::discard, part.first, part.level); break;
      }
    }
    return std::move(steps_);
  }

 private:
  struct Part {
    enum Kind { fresh, stored, load, discard } kind;
    std::size_t level;
    std::int32_t slots, length;
    std::int32_t first;  // the state it starts from
  };

  void add(ChainStep::Kind kind, std::int32_t at, std::size_t level = 0) {
    steps_.push_back({kind, at, static_cast<std::int32_t>(level)});
  }

  void reverse_one(std::int32_t first) {
    add(ChainStep::Kind::tape, first + 1);
    add(ChainStep::Kind::backward, first + 1);
  }

  void on_faster_level(const Part& part) {
    pending_.push_back({Part::fresh, part.level - 1, problem_.levels[part.level - 1].slots, part.length, part.first});
  }

  void from_fresh(const Part& part) {
    if (part.length == 0) return reverse_one(part.first);
    // Equal costs: not storing at all is better.
    if (table_.faster(part.level, part.length) <= table_.fresh(part.level, part.slots, part.length) && part.level > 0) {
      return on_faster_level(part);
    }
    add(ChainStep::Kind::store, part.first, part.level);
    pending_.push_back({Part::discard, part.level, 0, 0, part.first});
    pending_.push_back({Part::stored, part.level, part.slots, part.length, part.first});
  }

  void from_stored(const Part& part) {
    if (part.length == 0) return reverse_one(part.first);
    double best = table_.faster(part.level, part.length);
    std::int32_t distance = 0;  // none: the rest is done on faster levels
    for (std::int32_t d = 1; d <= part.length; ++d) {
      const double cost = table_.split(part.level, part.slots, part.length, d);
      if (cost < best) {
        best = cost;
        distance = d;
      }
    }
    if (distance == 0) return on_faster_level(part);
    const std::int32_t middle = part.first + distance;
    for (std::int32_t at = part.first + 1; at <= middle; ++at) add(ChainStep::Kind::advance, at);
    pending_.push_back({Part::stored, part.level, part.slots, distance - 1, part.first});
    pending_.push_back({Part::load, part.level, 0, 0, part.first});
    pending_.push_back({Part::fresh, part.level, part.slots - 1, part.length - distance, middle});
  }

  const HRevolveProblem& problem_;
  const Table& table_;
  ChainSteps steps_;
  std::vector<Part> pending_;
};

void check_problem(const HRevolveProblem& problem) {
  const auto not_negative = [](const char* what, double number) {
    if (!(number >= 0)) throw BadOption(fmt::format("{} is {}: it cannot be negative", what, number));
  };
  not_negative("layers", problem.layers);
  not_negative("forward_cost", problem.forward_cost);
  not_negative("backward_cost", problem.backward_cost);
  std::int64_t slots = 0;
  for (const StorageLevel& level : problem.levels) {
    not_negative("slots", level.slots);
    not_negative("write_cost", level.write_cost);
    not_negative("read_cost", level.read_cost);
    slots += level.slots;
  }
  if (problem.layers > 1 && slots == 0) throw BadOption("slots is 0 in every level: a chain needs at least one");
}

}  // namespace

double hrevolve_cost(const HRevolveProblem& problem) {
  check_problem(problem);
  if (problem.layers == 0) return 0;
  if (problem.layers == 1) return problem.backward_cost;
  const std::size_t slowest = problem.levels.size() - 1;
  return Table(problem).fresh(slowest, problem.levels[slowest].slots, problem.layers - 1);
}

ChainSteps hrevolve_schedule(const HRevolveProblem& problem) {
  check_problem(problem);
  if (problem.layers == 0) return {};
  if (problem.layers == 1) return {{ChainStep::Kind::tape, 1, 0}, {ChainStep::Kind::backward, 1, 0}};
  const Table table(problem);
  return ScheduleBuilder(problem, table).make();
}

// ---- the planner ----------------------------------------------------------------------------------------------------

namespace internal {
namespace {

Id disk_of(const Trace& trace) {
  for (Id t = 0; t < static_cast<Id>(trace.tiers.size()); ++t) {
    if (!trace.tiers[t].in_budget) return t;
  }
  throw BadOption("planner h-revolve needs a tier that does not count in the budget; the trace has none");
}

// The problem that is nearest to the chain: average costs, and as many slots on disk as its largest states fit.
HRevolveProblem problem_of(const Trace& trace, const ChainShape& chain, const Tier& disk) {
  HRevolveProblem problem{static_cast<std::int32_t>(chain.layers.size()), {}, 0, 0};
  StorageLevel level;
  Bytes largest = 0;
  int states = 0;
  for (const LayerShape& layer : chain.layers) {
    for (Id m = layer.first; m < layer.end; ++m) problem.forward_cost += trace.cost(m) / problem.layers;
    const TierEntry* entry = layer.state ? disk.find(*layer.state) : nullptr;
    if (!entry) continue;
    ++states;
    level.write_cost += entry->put_cost;
    level.read_cost += entry->get_cost;
    largest = std::max(largest, entry->bytes);
  }
  if (states == 0 && chain.layers.size() > 1) {
    throw BadOption(fmt::format("planner h-revolve: tier '{}' takes none of the chain's states", disk.name));
  }
  level.write_cost /= std::max(states, 1);
  level.read_cost /= std::max(states, 1);
  const Bytes fit = disk.capacity && largest > 0 ? *disk.capacity / largest : problem.layers;
  level.slots = static_cast<std::int32_t>(std::min<Bytes>(fit, problem.layers));
  problem.levels = {{0, 0, 0}, level};
  return problem;
}

}  // namespace

std::optional<Plan> plan_hrevolve(const Trace& trace, const PlanOptions& options) {
  const Timeline timeline(trace);
  const Id disk = disk_of(trace);
  const ChainShape chain = chain_of(trace, timeline, "h-revolve");
  HRevolveProblem problem = problem_of(trace, chain, trace.tiers[disk]);
  const auto plan_with = [&](int slots) {
    problem.levels[0].slots = slots;
    return plan_of_steps(trace, timeline, chain, hrevolve_schedule(problem), disk, options.budget);
  };
  if (options.slots) return plan_with(*options.slots);
  // A table takes a while; how many slots fit without a disk is quickly found out, and with one it is about as many.
  const int fewest =
      std::max(fewest_slots(problem.layers) - problem.levels[1].slots, problem.levels[1].slots > 0 ? 0 : 1);
  const int most = std::max(problem.layers, fewest);
  const int about = std::clamp(revolve_with_most_slots(trace, timeline, chain, options).slots, fewest, most);
  const int low = std::max(about - 3, fewest);
  SlotPlan best = plan_with_most_slots(trace, options, low, std::min(about + 3, most), plan_with);
  if (best.peak > options.budget && low > fewest) {
    SlotPlan smaller = plan_with_most_slots(trace, options, fewest, low - 1, plan_with);
    if (smaller.peak < best.peak) best = std::move(smaller);
  }
  return std::move(best.plan);
}

}  // namespace internal
}  // namespace reprise
