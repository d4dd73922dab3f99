#include "reprise/plan/hrevolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "plan/chains/lower_to_sum.h"
#include "plan/chains/revolve_slots.h"
#include "plan/planners.h"
#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

// What cannot be done costs this much for each layer: more than anything else, and still a number to reckon with.
constexpr double impossible = 1e15;

// Costs by length, from 0 on, as straight pieces: there are few of them.
class Pieces {
 public:
  explicit Pieces(const std::vector<double>& costs) {
    const auto size = static_cast<std::int32_t>(costs.size());
    for (std::int32_t at = 0; at < size;) {
      const double value = costs[at], slope = at + 1 == size ? 0 : costs[at + 1] - costs[at];
      starts_.push_back(at);
      values_.push_back(value);
      slopes_.push_back(slope);
      std::int32_t length = 1;
      while (at + length < size && is_near(value + slope * length, costs[at + length])) ++length;
      at += length;
    }
  }
  [[nodiscard]] double operator()(std::int32_t length) const {
    return on_piece(std::upper_bound(starts_.begin(), starts_.end(), length) - starts_.begin() - 1, length);
  }
  [[nodiscard]] const std::vector<std::int32_t>& starts() const { return starts_; }
  bool operator==(const Pieces&) const = default;

  // Sums of the same numbers in another order.
  [[nodiscard]] static bool is_near(double a, double b) { return std::abs(a - b) <= 1e-11 * std::abs(b); }

 private:
  [[nodiscard]] double on_piece(std::size_t piece, std::int32_t length) const {
    return values_[piece] + slopes_[piece] * (length - starts_[piece]);
  }

  std::vector<std::int32_t> starts_;
  std::vector<double> values_, slopes_;
};

// A function from below that is convex: the lower hull of the points so far.
class Hull {
 public:
  void add(std::int32_t at, double value) {
    if (!at_.empty() && at_.back() == at) return;
    double slope = 0;
    while (!at_.empty()) {
      slope = (value - value_.back()) / (at - at_.back());
      if (at_.size() == 1 || slope_.back() < slope) break;
      at_.pop_back(), value_.pop_back(), slope_.pop_back();
    }
    if (!at_.empty()) slope_.push_back(slope);
    at_.push_back(at);
    value_.push_back(value);
  }
  // At a place between the first point, of at least two, and the last, near the one that was asked for before.
  [[nodiscard]] double operator()(std::int32_t place) {
    near_ = std::min(near_, slope_.size() - 1);
    while (at_[near_] > place) --near_;
    while (near_ + 1 < slope_.size() && at_[near_ + 1] <= place) ++near_;
    return value_[near_] + slope_[near_] * (place - at_[near_]);
  }
  // At all places, from the first point on.
  [[nodiscard]] std::vector<double> everywhere() const {
    std::vector<double> values(static_cast<std::size_t>(at_.back() - at_.front()) + 1, value_.back());
    double* to = values.data();
    for (std::size_t k = 0; k < slope_.size(); ++k) {
      const double value = value_[k], slope = slope_[k];
      const std::int32_t count = at_[k + 1] - at_[k];
      for (std::int32_t i = 0; i < count; ++i) to[i] = value + slope * i;
      to += count;
    }
    return values;
  }

 private:
  std::vector<std::int32_t> at_;
  std::vector<double> value_, slope_;  // one slope less: from each point to the next
  std::size_t near_ = 0;
};

// Finds min over 1 <= x <= length of ahead(x) + beyond(length - x), for one length after the other, where ahead(x)
// becomes known when `length` reaches x.
//
// Between two corners where the slope of one of the two rises, the sum is concave in x, and least at an end. So only
// these corners need to be looked at, and the two ends. And of them only those around the last minimum, in each
// direction up to where the sum of two convex functions from below has passed the best so far and rises: from there on
// it only rises. That is exact for any functions, and quick for those that are nearly convex, as the costs here are. A
// block of lengths is done together. Neither of the two functions may fall: so a split inside the block costs at least
// as much as one right before it with nothing beyond, and if that is not better than what was found, the block does not
// depend on itself. Otherwise every x inside of it is looked at.
class Minimum {
 public:
  explicit Minimum(const std::vector<double>& beyond) : beyond_(beyond), ahead_(beyond.size()) {
    const auto last = static_cast<std::int32_t>(beyond.size()) - 1;
    Hull hull;
    hull.add(0, beyond[0]);
    for (std::int32_t y = 1; y < last; ++y) {
      if (!rises(beyond, y)) continue;
      corners_beyond_.push_back(y);
      hull.add(y, beyond[y]);
    }
    hull.add(last, beyond[last]);
    beyond_below_ = hull.everywhere();
  }

  // For length = 1, 2, ...: of this ahead(length).
  double next(double ahead) {
    const std::int32_t length = ++length_;
    ahead_[length] = ahead;
    if (length == 1) ahead_below_.add(1, ahead);
    if (length >= 3 && rises(ahead_, length - 1)) corners_ahead_.push_back(length - 1);
    if (length >= first_ + block) begin_block(length);
    if (depends_on_itself_) look_at_ahead(length);
    return best_[length - first_];
  }

 private:
  static constexpr std::int32_t block = 128;

  [[nodiscard]] static bool rises(const std::vector<double>& values, std::int32_t at) {
    const double before = values[at] - values[at - 1], after = values[at + 1] - values[at];
    return after > before && !Pieces::is_near(values[at] + before, values[at + 1]);
  }

  // The lengths first..first+block-1, with every x below the block that matters.
  void begin_block(std::int32_t first) {
    first_ = first;
    size_ = std::min<std::int32_t>(block, static_cast<std::int32_t>(beyond_.size()) - first);
    best_.fill(std::numeric_limits<double>::infinity());
    depends_on_itself_ = true;
    if (first == 1) return;
    const std::int32_t last = first - 1;
    for (; hulled_ < corners_ahead_.size(); ++hulled_) {
      ahead_below_.add(corners_ahead_[hulled_], ahead_[corners_ahead_[hulled_]]);
    }
    ahead_below_.add(last, ahead_[last]);
    look_at_ahead(1);
    // Some corners near the last minimum give a good bound; the best of them is where the others are looked for from.
    constexpr std::ptrdiff_t some = 4;
    double least = std::numeric_limits<double>::infinity();
    std::int32_t from = 1;
    const auto look = [&](std::int32_t x) {
      if (ahead_[x] + beyond_[first - x] >= least) return;
      least = ahead_[x] + beyond_[first - x];
      from = x;
    };
    for_some(corners_ahead_, from_, some, [&](std::int32_t x) {
      look_at_ahead(x);
      look(x);
    });
    for_some(corners_beyond_, first - from_, some, [&](std::int32_t y) {
      if (y > last) return;
      look_at_beyond(y);
      look(first - y);
    });
    from_ = from;
    find_reach(from, from - 1, -1, reach_down_);
    find_reach(from, last - from, 1, reach_up_);
    look_between(from - std::min(reach_down_, from - 1), from + std::min(reach_up_, last - from));
    depends_on_itself_ = *std::max_element(best_.begin(), best_.begin() + size_) > ahead_[last] + beyond_[0];
  }

  // Calls use(corner) for some corners on each side of a place.
  template <class Use>
  static void for_some(const std::vector<std::int32_t>& corners, std::int32_t place, std::ptrdiff_t count,
                       const Use& use) {
    const auto middle = std::lower_bound(corners.begin(), corners.end(), place);
    const auto begin = middle - std::min(count, middle - corners.begin());
    const auto end = middle + std::min(count, corners.end() - middle);
    for (auto corner = begin; corner != end; ++corner) use(*corner);
  }

  // How far from a place, in one direction and at most so far, there may be something better: a power of two that is
  // enough and, if it is not the last block's, less than twice as much as needed.
  void find_reach(std::int32_t from, std::int32_t most, std::int32_t direction, std::int32_t& reach) {
    const auto is_enough = [&](std::int32_t distance) {
      return distance >= most || is_over(from, from + direction * distance);
    };
    if (is_enough(reach)) {
      if (reach > 1 && is_enough(reach / 2)) reach /= 2;
    } else {
      do reach *= 2;
      while (!is_enough(reach));
    }
  }

  // All corners at these places, for any length of the block.
  void look_between(std::int32_t lowest, std::int32_t highest) {
    for (auto x = std::lower_bound(corners_ahead_.begin(), corners_ahead_.end(), lowest);
         x != corners_ahead_.end() && *x <= highest; ++x) {
      look_at_ahead(*x);
    }
    auto y = std::lower_bound(corners_beyond_.begin(), corners_beyond_.end(), first_ - highest);
    for (; y != corners_beyond_.end() && *y <= first_ + size_ - 1 - lowest; ++y) look_at_beyond(*y);
  }

  // For all lengths of the block that are not less than x, or y.
  void look_at_ahead(std::int32_t x) {
    const std::int32_t skipped = std::max(0, x - first_);
    lower_to_sum(best_.data() + skipped, beyond_.data() + (first_ + skipped - x), size_ - skipped, ahead_[x]);
  }
  // The x below the block.
  void look_at_beyond(std::int32_t y) {
    const std::int32_t skipped = std::max(0, y + 1 - first_), end = std::min(size_, y);
    if (skipped >= end) return;
    lower_to_sum(best_.data() + skipped, ahead_.data() + (first_ + skipped - y), end - skipped, beyond_[y]);
  }

  // Whether, for all lengths of the block, everything beyond this place, seen from another one, is worse.
  [[nodiscard]] bool is_over(std::int32_t from, std::int32_t x) {
    const double ahead = ahead_below_(x), ahead_from = ahead_below_(from);
    for (std::int32_t i = 0; i < size_; ++i) {
      const double here = ahead + beyond_below_[first_ + i - x];
      if (here <= best_[i] * (1 + 1e-11) || here < ahead_from + beyond_below_[first_ + i - from]) return false;
    }
    return true;
  }

  const std::vector<double>& beyond_;
  std::vector<double> beyond_below_;
  std::vector<double> ahead_;  // up to length_; ahead_[0] is nothing
  std::int32_t length_ = 0;
  Hull ahead_below_;
  std::size_t hulled_ = 0;  // corners that are in it
  std::vector<std::int32_t> corners_ahead_, corners_beyond_;

  std::int32_t first_ = 1 - block, size_ = 0;  // of the block
  std::array<double, block> best_{};
  bool depends_on_itself_ = true;
  std::int32_t from_ = 1;                       // where the last block began to look
  std::int32_t reach_down_ = 1, reach_up_ = 1;  // and how far it did
};

// Costs of reversing `length + 1` layers from a state that is at hand, by dynamic programming.
class Table {
 public:
  explicit Table(const HRevolveProblem& problem) : problem_(problem), longest_(problem.layers - 1) {
    levels_.resize(problem.levels.size());
    for (std::size_t k = 0; k < levels_.size(); ++k) fill(k);
  }

  // Returns whether Revolve, whose costs have a closed form, solves this level: it costs nothing and has none below it.
  [[nodiscard]] bool is_revolve(std::size_t k) const {
    const StorageLevel& level = problem_.levels[k];
    return k == 0 && level.slots > 0 && level.read_cost == 0 && level.write_cost == 0;
  }
  // With `slots` free in level k and all slots of the faster levels: the state is not stored in level k, or it is, in
  // one of these slots.
  [[nodiscard]] double fresh(std::size_t k, std::int32_t slots, std::int32_t length) const {
    if (is_revolve(k)) return levels_[0].rows[0](length);
    if (slots == 0) return faster(k, length);
    return std::min(faster(k, length), problem_.levels[k].write_cost + stored(k, slots, length));
  }
  [[nodiscard]] double stored(std::size_t k, std::int32_t slots, std::int32_t length) const {
    return row(k, slots)(length);
  }
  // Returns the least cost without level k.
  [[nodiscard]] double faster(std::size_t k, std::int32_t length) const {
    if (k > 0) return fresh(k - 1, problem_.levels[k - 1].slots, length);
    return problem_.backward_cost + impossible * length;
  }
  // Returns the distance to go ahead from a stored state before what lies beyond is reversed, for the least cost. None:
  // the rest is done on faster levels.
  [[nodiscard]] std::optional<std::int32_t> distance(std::size_t k, std::int32_t slots, std::int32_t length) const {
    const double cost = stored(k, slots, length), without = faster(k, length);
    if (without <= cost || Pieces::is_near(without, cost)) return std::nullopt;
    double best = std::numeric_limits<double>::infinity();
    std::int32_t result = 1;
    const auto look = [&](std::int32_t x) {
      if (x < 1 || x > length) return;
      const double there = way_there_and_back(k, x) + stored(k, slots, x - 1) + fresh(k, slots - 1, length - x);
      if (there >= best) return;
      best = there;
      result = x;
    };
    // As for Minimum: at a corner of one of the two, or at an end. Corners are next to where pieces start.
    look(1);
    look(length);
    const auto look_around = [&](std::int32_t x) {
      for (std::int32_t at = x - 1; at <= x + 1; ++at) look(at);
    };
    for (const std::int32_t start : row(k, slots).starts()) look_around(start + 1);
    for (const std::int32_t start : fresh_starts(k, slots - 1)) look_around(length - start);
    return result;
  }

 private:
  [[nodiscard]] const Pieces& row(std::size_t k, std::int32_t slots) const {
    return levels_[k].rows[std::min<std::size_t>(slots, levels_[k].rows.size()) - 1];
  }
  [[nodiscard]] const std::vector<std::int32_t>& fresh_starts(std::size_t k, std::int32_t slots) const {
    const std::vector<std::vector<std::int32_t>>& starts = levels_[k].fresh_starts;
    return starts[std::min<std::size_t>(slots, starts.size() - 1)];
  }

  [[nodiscard]] double way_there_and_back(std::size_t k, std::int32_t distance) const {
    return distance * problem_.forward_cost + problem_.levels[k].read_cost;
  }

  void fill_as_revolve() {
    std::vector<double> costs;
    for (std::int64_t layers = 1; layers <= longest_ + 1; ++layers) {
      const auto advances = static_cast<double>(revolve_steps(layers, problem_.levels[0].slots) - layers);
      costs.push_back(advances * problem_.forward_cost + static_cast<double>(layers) * problem_.backward_cost);
    }
    levels_[0].rows.emplace_back(costs);
  }

  void fill(std::size_t k) {
    if (is_revolve(k)) return fill_as_revolve();
    std::vector<double> without;
    for (std::int32_t length = 0; length <= longest_; ++length) without.push_back(faster(k, length));
    Level& level = levels_[k];
    std::vector<double> fresh = without, stored(without.size());
    level.fresh_starts.push_back(Pieces(fresh).starts());
    for (std::int32_t slots = 1; slots <= problem_.levels[k].slots; ++slots) {
      fill_with_one_more_slot(stored, k, without, fresh);
      Pieces row(stored);
      if (slots > 1 && row == level.rows.back()) break;  // nor do more slots help
      level.rows.push_back(std::move(row));
      const double write_cost = problem_.levels[k].write_cost;
      for (std::size_t length = 0; length < fresh.size(); ++length) {
        fresh[length] = std::min(without[length], write_cost + stored[length]);
      }
      level.fresh_starts.push_back(Pieces(fresh).starts());
    }
  }

  void fill_with_one_more_slot(std::vector<double>& stored, std::size_t k, const std::vector<double>& without,
                               const std::vector<double>& one_slot_less) const {
    Minimum minimum(one_slot_less);
    stored[0] = without[0];
    for (std::int32_t length = 1; length <= longest_; ++length) {
      const double split = minimum.next(way_there_and_back(k, length) + stored[length - 1]);
      stored[length] = std::min(without[length], split);
    }
  }

  struct Level {
    // By number of slots, from 1 and from 0 on; the last one serves all larger numbers.
    std::vector<Pieces> rows;
    std::vector<std::vector<std::int32_t>> fresh_starts;
  };
  const HRevolveProblem& problem_;
  const std::int32_t longest_;
  std::vector<Level> levels_;
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

  void as_revolve(const Part& part) {
    const auto source = revolve_source(part.length + 1, part.slots);
    while (const auto step = source->next()) add(step->kind, step->at + part.first);
  }

  void from_fresh(const Part& part) {
    if (part.length == 0) return reverse_one(part.first);
    if (table_.is_revolve(part.level)) return as_revolve(part);
    // Equal costs: not storing at all is better.
    const double without = table_.faster(part.level, part.length);
    const double cost = table_.fresh(part.level, part.slots, part.length);
    if (part.level > 0 && (without <= cost || Pieces::is_near(without, cost))) {
      return on_faster_level(part);
    }
    add(ChainStep::Kind::store, part.first, part.level);
    pending_.push_back({Part::discard, part.level, 0, 0, part.first});
    pending_.push_back({Part::stored, part.level, part.slots, part.length, part.first});
  }

  void from_stored(const Part& part) {
    if (part.length == 0) return reverse_one(part.first);
    const auto ahead = table_.distance(part.level, part.slots, part.length);
    if (!ahead) return on_faster_level(part);
    const std::int32_t distance = *ahead;
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
    if (number >= 0 && std::isfinite(number)) return;
    throw BadOption(fmt::format("{} is {}: it has to be a number that is not negative", what, number));
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

// Returns the problem that is nearest to the chain: average costs, and as many slots on disk as its largest states fit.
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
    level.write_cost += entry->put_cost + entry->put_time;
    level.read_cost += entry->get_cost + entry->get_time;
    largest = std::max(largest, entry->bytes);
  }
  if (states == 0 && chain.layers.size() > 1) {
    throw BadOption(fmt::format("planner h-revolve: tier '{}' takes none of the chain's states", printable(disk.name)));
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
  if (const auto slots = own_options<HRevolvePlanner>(options).slots) return plan_with(*slots);
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
