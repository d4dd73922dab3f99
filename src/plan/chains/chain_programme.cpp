#include "plan/chains/chain_programme.h"

#include <algorithm>

#include "plan/chains/chain_table.h"

namespace reprise::internal {
namespace {

// Reads a schedule off a filled table, and counts its cost and its bytes without rounding.
class Reader {
 public:
  Reader(const ChainProblem& problem, ChainTable& table) : problem_(problem), table_(table) {}

  ChainProgramme read(int units) {
    pending_.push_back({Part::at_hand, 1, static_cast<int>(problem_.layers.size()), units, 0});
    while (!pending_.empty()) {
      const Part part = pending_.back();
      pending_.pop_back();
      switch (part.kind) {
        case Part::load: add(ChainStep::Kind::load, part.first); break;
        case Part::discard: add(ChainStep::Kind::discard, part.first); break;
        case Part::backward: backward(part.first, part.held); break;
        case Part::remembered: reverse_remembered(part); break;
        case Part::at_hand: reverse_at_hand(part); break;
        case Part::loose:
          reverse_one(part, layer(part.first).loose_retape_cost,
                      layer(part.first).waiting + layer(part.first).loose_retape);
          break;
      }
    }
    return std::move(result_);
  }

 private:
  using Input = ChainTable::Input;

  struct Part {
    enum Kind { remembered, at_hand, loose, load, discard, backward } kind;  // the first three as in the table
    int first, last;  // layers; `first` is a state for load and discard
    int units;        // free
    Bytes held;       // remembered, state first-1 included if it is
  };

  [[nodiscard]] const ChainLayer& layer(int k) const { return problem_.layers[k - 1]; }
  [[nodiscard]] Bytes state_bytes(int k) const { return k == 0 ? problem_.input_bytes : layer(k).state_bytes; }

  void add(ChainStep::Kind kind, int at) { result_.steps.push_back({kind, at, 0}); }
  void spend(double cost, Bytes live) {
    result_.cost += cost;
    result_.peak = std::max(result_.peak, live);
  }

  void backward(int at, Bytes held) {
    add(ChainStep::Kind::backward, at);
    spend(layer(at).backward_cost, held + layer(at).backward);
  }

  void reverse_one(const Part& part, double cost, Bytes live) {
    add(ChainStep::Kind::tape, part.first);
    spend(cost, part.held + live);
    backward(part.first, part.held);
  }

  // In all of these what comes later is pushed first.

  void reverse_remembered(const Part& part) {
    const auto [s, t] = std::pair(part.first, part.last);
    if (s == t) return reverse_one(part, table_.single_cost(s), table_.tape_bytes(s, s, Input::remembered));
    const ChainTable::Choice choice = table_.choose_remembered(s, t, part.units);
    if (choice.place == s) return tape_and_go_on(part, Input::remembered);
    const int middle = choice.place - 1;
    for (int k = s; k <= middle; ++k) {
      add(ChainStep::Kind::advance, k);
      spend(0, part.held + table_.advance_bytes(k, t, k == s ? Input::remembered : Input::counted));
    }
    spend(table_.advance_cost(s, choice.place, t), 0);
    if (choice.loose) {
      add(ChainStep::Kind::store, middle);
      pending_.push_back({Part::discard, middle, 0, 0, 0});
      pending_.push_back({Part::loose, s, s, part.units, part.held});
      pending_.push_back({Part::load, s - 1, 0, 0, 0});
      pending_.push_back({Part::remembered, choice.place, t, part.units - table_.state_units(middle),
                          part.held + state_bytes(middle)});
    } else {
      pending_.push_back({Part::remembered, s, middle, part.units, part.held});
      pending_.push_back({Part::load, s - 1, 0, 0, 0});
      pending_.push_back({Part::at_hand, choice.place, t, part.units, part.held});
    }
  }

  void reverse_at_hand(const Part& part) {
    const auto [s, t] = std::pair(part.first, part.last);
    if (table_.chooses_to_remember(s, t, part.units)) {
      add(ChainStep::Kind::store, s - 1);
      pending_.push_back({Part::discard, s - 1, 0, 0, 0});
      pending_.push_back(
          {Part::remembered, s, t, part.units - table_.state_units(s - 1), part.held + state_bytes(s - 1)});
    } else if (s == t) {
      reverse_one(part, table_.single_cost(s), table_.tape_bytes(s, s, Input::counted));
    } else {
      tape_and_go_on(part, Input::counted);
    }
  }

  void tape_and_go_on(const Part& part, Input input) {
    const auto [s, t] = std::pair(part.first, part.last);
    add(ChainStep::Kind::tape, s);
    spend(table_.tape_cost(s, t), part.held + table_.tape_bytes(s, t, input));
    const int units = part.units - table_.tape_units(s);
    const Bytes held = part.held + layer(s).tape_bytes;
    if (layer(s).needs_state) {
      add(ChainStep::Kind::store, s);
      pending_.push_back({Part::discard, s, 0, 0, 0});
      pending_.push_back({Part::backward, s, s, 0, part.held});
      pending_.push_back({Part::remembered, s + 1, t, units - table_.state_units(s), held + state_bytes(s)});
    } else {
      pending_.push_back({Part::backward, s, s, 0, part.held});
      pending_.push_back({Part::at_hand, s + 1, t, units, held});
    }
  }

  const ChainProblem& problem_;
  ChainTable& table_;
  ChainProgramme result_;
  std::vector<Part> pending_;
};

// Returns the cheapest schedule that really fits among those for different numbers of units, looked for by bisection.
std::optional<ChainProgramme> cheapest_that_fits(const ChainProblem& problem, ChainTable& table, int least, int most,
                                                 Bytes budget) {
  std::optional<ChainProgramme> best;
  while (least <= most) {
    const int middle = least + (most - least + 1) / 2;
    ChainProgramme programme = Reader(problem, table).read(middle);
    const bool fits = programme.peak <= budget;
    if (fits && (!best || programme.cost < best->cost)) best = std::move(programme);
    if (fits) {
      least = middle + 1;
    } else {
      most = middle - 1;
    }
  }
  return best;
}

}  // namespace

std::optional<ChainProgramme> solve_chain(const ChainProblem& problem, Bytes budget,
                                          const ChainProgrammeOptions& options) {
  if (problem.layers.empty()) return ChainProgramme{{}, 0, 0, 1, true};
  const auto units = ChainUnits::choose(problem, budget, options);
  if (!units) return std::nullopt;
  ChainTable table(problem, *units, options);
  const auto stop = [&options] {
    if (options.cancel && options.cancel->load(std::memory_order_relaxed)) return true;
    return options.deadline && std::chrono::steady_clock::now() > *options.deadline;
  };
  if (!table.fill(stop)) return std::nullopt;

  const std::vector<double> costs(table.whole(), table.whole() + units->width);
  const int most = units->width - 1;
  const int least = static_cast<int>(
      std::find_if(costs.begin(), costs.end(), [](double cost) { return cost != infinite; }) - costs.begin());
  if (least > most) return std::nullopt;
  std::optional<ChainProgramme> result;
  if (options.rounding == ChainProgrammeOptions::Rounding::even && !units->exact) {
    result = cheapest_that_fits(problem, table, least, most, budget);
  } else {
    // Fewer units at the same cost, or at any cost, make a smaller peak.
    const auto cheapest = std::lower_bound(costs.begin(), costs.end(), costs[most], std::greater<>());
    result = Reader(problem, table).read(options.smallest ? least : static_cast<int>(cheapest - costs.begin()));
  }
  if (result) {
    result->unit = units->unit;
    result->exact = units->exact;
  }
  return result;
}

}  // namespace reprise::internal
