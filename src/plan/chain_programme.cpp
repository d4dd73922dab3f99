#include "reprise/plan/chain_programme.h"

#include <limits>

#include "plan/chain_table.h"

namespace reprise {
namespace {

// Reads a schedule off a filled table.
class Reader {
 public:
  Reader(const std::vector<ChainLayer>& layers, ChainTable& table) : layers_(layers), table_(table) {}

  // Fills in steps and cost.
  void read(int units, ChainProgramme& result) {
    pending_.push_back({Part::at_hand, 1, static_cast<int>(layers_.size()), units});
    while (!pending_.empty()) {
      const Part part = pending_.back();
      pending_.pop_back();
      switch (part.kind) {
        case Part::load: add(ChainStep::Kind::load, part.first); break;
        case Part::discard: add(ChainStep::Kind::discard, part.first); break;
        case Part::backward: backward(part.first); break;
        case Part::remembered: reverse_remembered(part); break;
        case Part::at_hand: reverse_at_hand(part); break;
        case Part::loose: reverse_one(part.first, layers_[part.first - 1].loose_retape_cost); break;
      }
    }
    result.steps = std::move(steps_);
    result.cost = cost_;
  }

 private:
  struct Part {
    enum Kind { remembered, at_hand, loose, load, discard, backward } kind;  // the first three as in the table
    int first, last;  // layers; `first` is a state for load and discard
    int units;        // free
  };

  void add(ChainStep::Kind kind, int at) { steps_.push_back({kind, at, 0}); }

  void backward(int at) {
    add(ChainStep::Kind::backward, at);
    cost_ += layers_[at - 1].backward_cost;
  }

  void reverse_one(int at, double cost) {
    add(ChainStep::Kind::tape, at);
    cost_ += cost;
    backward(at);
  }

  // In all of these what comes later is pushed first.

  void reverse_remembered(const Part& part) {
    const auto [s, t] = std::pair(part.first, part.last);
    if (s == t) return reverse_one(s, table_.single_cost(s));
    const ChainTable::Choice choice = table_.choose_remembered(s, t, part.units);
    if (choice.place == s) return tape_and_go_on(part);
    const int middle = choice.place - 1;
    for (int k = s; k <= middle; ++k) add(ChainStep::Kind::advance, k);
    cost_ += table_.advance_cost(s, choice.place, t);
    if (choice.loose) {
      add(ChainStep::Kind::store, middle);
      pending_.push_back({Part::discard, middle, 0, 0});
      pending_.push_back({Part::loose, s, s, part.units});
      pending_.push_back({Part::load, s - 1, 0, 0});
      pending_.push_back({Part::remembered, choice.place, t, part.units - table_.state_units(middle)});
    } else {
      pending_.push_back({Part::remembered, s, middle, part.units});
      pending_.push_back({Part::load, s - 1, 0, 0});
      pending_.push_back({Part::at_hand, choice.place, t, part.units});
    }
  }

  void reverse_at_hand(const Part& part) {
    const auto [s, t] = std::pair(part.first, part.last);
    if (table_.chooses_to_remember(s, t, part.units)) {
      add(ChainStep::Kind::store, s - 1);
      pending_.push_back({Part::discard, s - 1, 0, 0});
      pending_.push_back({Part::remembered, s, t, part.units - table_.state_units(s - 1)});
    } else if (s == t) {
      reverse_one(s, table_.single_cost(s));
    } else {
      tape_and_go_on(part);
    }
  }

  void tape_and_go_on(const Part& part) {
    const auto [s, t] = std::pair(part.first, part.last);
    add(ChainStep::Kind::tape, s);
    cost_ += table_.tape_cost(s, t);
    const int units = part.units - table_.tape_units(s);
    if (layers_[s - 1].needs_state) {
      add(ChainStep::Kind::store, s);
      pending_.push_back({Part::discard, s, 0, 0});
      pending_.push_back({Part::backward, s, s, 0});
      pending_.push_back({Part::remembered, s + 1, t, units - table_.state_units(s)});
    } else {
      pending_.push_back({Part::backward, s, s, 0});
      pending_.push_back({Part::at_hand, s + 1, t, units});
    }
  }

  const std::vector<ChainLayer>& layers_;
  ChainTable& table_;
  ChainSteps steps_;
  double cost_ = 0;
  std::vector<Part> pending_;
};

}  // namespace

std::optional<ChainProgramme> solve_chain(const ChainProblem& problem, Bytes budget,
                                          const ChainProgrammeOptions& options) {
  if (problem.layers.empty()) return ChainProgramme{{}, 0, 0, 1, true};
  const auto units = ChainUnits::choose(problem, budget, options.units);
  if (!units) return std::nullopt;
  ChainTable table(problem, *units);
  if (!table.fill(options.cancel)) return std::nullopt;

  constexpr double infinite = std::numeric_limits<double>::infinity();
  const double* whole = table.whole();
  int free = units->width - 1;
  if (whole[free] == infinite) return std::nullopt;
  // Fewer units at the same cost, or at any cost, make a smaller peak.
  while (free > 0 && (options.smallest ? whole[free - 1] != infinite : whole[free - 1] == whole[free])) --free;
  ChainProgramme result;
  result.unit = units->unit;
  result.exact = units->exact;
  result.peak = units->least + free * units->unit + units->remainder;
  Reader(problem.layers, table).read(free, result);
  return result;
}

}  // namespace reprise
