#include "plan/chains/chain_table.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/chains/lower_to_sum.h"

namespace reprise::internal {

// ---- units ----------------------------------------------------------------------------------------------------------

std::optional<ChainUnits> ChainUnits::choose(const ChainProblem& problem, Bytes budget,
                                             const ChainProgrammeOptions& options) {
  const auto& layers = problem.layers;
  const auto [smallest, largest] = std::minmax_element(
      layers.begin(), layers.end(), [](const ChainLayer& a, const ChainLayer& b) { return a.waiting < b.waiting; });
  ChainUnits units;
  units.least = std::numeric_limits<Bytes>::max();
  Bytes most = 0, all = problem.input_bytes, divisor = problem.input_bytes;
  for (const ChainLayer& l : layers) {
    for (const Bytes bytes : {l.first.advance, l.first.advance_from, l.first.tape, l.first.tape_from, l.backward}) {
      units.least = std::min(units.least, bytes);
      most = std::max(most, bytes);
    }
    for (const Bytes bytes : {l.again.advance, l.again.advance_from, l.again.tape, l.again.tape_from, l.fresh_retape,
                              l.fresh_retape_from, l.loose_retape}) {
      units.least = std::min(units.least, smallest->waiting + bytes);
      most = std::max(most, largest->waiting + bytes);
    }
    all += l.state_bytes + l.tape_bytes;
    divisor = std::gcd(divisor, std::gcd(l.state_bytes, l.tape_bytes));
  }
  if (budget < units.least) return std::nullopt;
  const Bytes at_most = most - units.least + all;
  Bytes room = std::min(budget - units.least, at_most);
  const Bytes parts = std::max(options.units, 1);
  divisor = std::max<Bytes>(divisor, 1);
  units.exact = room / divisor <= parts;
  units.unit = units.exact ? divisor : room / parts + (room % parts != 0);
  // With even rounding, a schedule for a bit more than the budget may fit.
  if (!units.exact && options.rounding == ChainProgrammeOptions::Rounding::even) {
    room = std::min(room + room / 16, at_most);
  }
  units.remainder = room % units.unit;
  units.width = static_cast<int>(room / units.unit) + 1;
  return units;
}

int ChainUnits::to_remember(Bytes bytes) const {
  return static_cast<int>(std::min<Bytes>(bytes / unit + (bytes % unit != 0), width));
}

int ChainUnits::to_have_free(Bytes live) const {
  return to_remember(std::max<Bytes>(0, live - least - remainder));
}

// ---- the table ------------------------------------------------------------------------------------------------------

ChainTable::ChainTable(const ChainProblem& problem, const ChainUnits& units, const ChainProgrammeOptions& options)
    : layers_(problem.layers),
      n_(static_cast<int>(problem.layers.size())),
      short_(options.long_parts ? options.long_parts->longer_than : n_),
      units_(units),
      advance_sum_(n_ + 1, 0),
      run_sum_(n_ + 1, 0),
      state_units_(n_ + 1, 0),
      tape_units_(n_ + 1, 0),
      ends_long_parts_(n_ + 1, options.long_parts ? 0 : 1),
      columns_(n_ + 1),
      loose_(static_cast<std::size_t>(n_) * units.width, infinite) {
  if (options.long_parts) {
    for (const int t : options.long_parts->end_with) ends_long_parts_[t] = 1;
    ends_long_parts_[n_] = 1;
  }
  for (int k = 1; k <= n_; ++k) {
    advance_sum_[k] = advance_sum_[k - 1] + layer(k).advance_cost;
    run_sum_[k] = run_sum_[k - 1] + layer(k).run_cost;
  }
  const bool up = options.rounding == ChainProgrammeOptions::Rounding::up || units.exact;
  const auto round = [&](std::vector<int>& result, auto bytes_of) {
    Bytes sum = 0, rounded = 0;  // of all so far, rounded in units
    for (int k = 0; k <= n_; ++k) {
      sum += bytes_of(k);
      const Bytes nearest = sum / units.unit + (sum % units.unit * 2 >= units.unit);
      result[k] =
          up ? units.to_remember(bytes_of(k)) : static_cast<int>(std::min<Bytes>(nearest - rounded, units.width));
      rounded = nearest;
    }
  };
  round(state_units_, [&](int k) { return k == 0 ? problem.input_bytes : layer(k).state_bytes; });
  round(tape_units_, [&](int k) { return k == 0 ? 0 : layer(k).tape_bytes; });
}

bool ChainTable::fill(const std::function<bool()>& stop) {
  return short_ < n_ ? fill_some(stop) : fill_all(stop);
}

void ChainTable::begin_column(int t, Column& at_hand) {
  columns_[t].assign(static_cast<std::size_t>(t - lowest(t) + 1) * units_.width, infinite);
  at_hand = columns_[t];
  fill_single(t, at_hand);
}

bool ChainTable::fill_all(const std::function<bool()>& stop) {
  for (int first = 1; first <= n_;) {
    const int last = std::min(first + tile - 1, n_);
    for (int t = first; t <= last; ++t) begin_column(t, at_hand_[t - first]);
    for (int highest = last - 1; highest >= 1;) {
      if (stop()) return false;
      // Next to the diagonal a square would read itself.
      const int lowest = highest >= first ? highest : std::max(highest - tile + 1, 1);
      fill_square(lowest, highest, first, last);
      highest = lowest - 1;
    }
    first = last + 1;
  }
  return true;
}

// Short parts column by column; the others of several columns at a time, so that what they read together is read from
// far away once.
bool ChainTable::fill_some(const std::function<bool()>& stop) {
  std::vector<int> ends;
  for (int t = 1; t <= n_; ++t) {
    if (stop()) return false;
    fill_short(t, at_hand_[ends.size()]);
    if (ends_long_parts_[t]) ends.push_back(t);
    if (ends.empty() || (ends.size() < tile && t < n_)) continue;
    for (int s = ends.back() - short_; s >= 1; --s) {
      if (s % 16 == 0 && stop()) return false;
      fill_long(ends, s);
    }
    ends.clear();
  }
  return true;
}

void ChainTable::fill_short(int t, Column& at_hand) {
  begin_column(t, at_hand);
  for (int s = t - 1; s >= std::max(1, t - short_ + 1); --s) {
    Way way;
    for (int r = s + 1; r <= t; ++r) advance_and_come_back(s, r, t, at_hand, way);
    tape_first(s, t, at_hand);
    fill_at_hand(s, t, at_hand);
  }
}

// Row s of the columns that end with these.
void ChainTable::fill_long(const std::vector<int>& ends, int s) {
  std::array<Way, tile> ways{};
  std::size_t first = 0;
  while (s > ends[first] - short_) ++first;  // short
  for (int r = s + 1; r <= ends[first]; ++r) {
    const bool there = has(s, r - 1);
    for (std::size_t i = first; i < ends.size(); ++i) {
      if (there) {
        advance_and_come_back(s, r, ends[i], at_hand_[i], ways[i]);
      } else {
        extend(ways[i], s, r, ends[i]);
      }
    }
  }
  for (std::size_t i = first; i < ends.size(); ++i) {
    const int t = ends[i];
    for (int r = ends[first] + 1; r <= t; ++r) {
      if (has(s, r - 1)) {
        advance_and_come_back(s, r, t, at_hand_[i], ways[i]);
      } else {
        extend(ways[i], s, r, t);
      }
    }
    tape_first(s, t, at_hand_[i]);
    fill_at_hand(s, t, at_hand_[i]);
  }
}

void ChainTable::fill_single(int t, Column& at_hand) {
  const ChainLayer& l = layer(t);
  const auto fill_from = [&](double* at, Bytes live, double cost) {
    const int low = units_.to_have_free(std::max(live, l.backward));
    if (low < units_.width) std::fill(at + low, at + units_.width, cost);
  };
  fill_from(row(t, t), tape_bytes(t, t, Input::remembered), single_cost(t));
  if (t < n_) fill_from(loose_.data() + first_of_loose(t), l.waiting + l.loose_retape, l.loose_retape_cost);
  fill_at_hand(t, t, at_hand);
}

// Rows (lowest..highest, first..last). Rows of the same columns for larger s, and all earlier columns, are there.
void ChainTable::fill_square(int lowest, int highest, int first, int last) {
  std::array<std::array<Way, tile>, tile> ways{};
  const int from = std::max(first, highest + 1);
  for (int s = lowest; s <= highest; ++s) {
    for (int t = from; t <= last; ++t) {
      for (int r = s + 1; r <= highest; ++r) extend(ways[s - lowest][t - first], s, r, t);
    }
  }
  // The places that no entry of the square depends on, which are nearly all of them, for all entries together.
  for (int r = highest + 1; r <= first; ++r) {
    for (int s = lowest; s <= highest; ++s) {
      for (int t = from; t <= last; ++t) {
        advance_and_come_back(s, r, t, at_hand_[t - first], ways[s - lowest][t - first]);
      }
    }
  }
  for (int s = highest; s >= lowest; --s) {
    for (int t = from; t <= last; ++t) {
      Column& at_hand = at_hand_[t - first];
      Way near;
      for (int r = s + 1; r <= highest; ++r) advance_and_come_back(s, r, t, at_hand, near);
      Way& beyond = ways[s - lowest][t - first];
      for (int r = std::max(highest, first) + 1; r <= t; ++r) advance_and_come_back(s, r, t, at_hand, beyond);
      tape_first(s, t, at_hand);
      fill_at_hand(s, t, at_hand);
    }
  }
}

void ChainTable::advance_and_come_back(int s, int r, int t, const Column& at_hand, Way& way) {
  extend(way, s, r, t);
  const int low = way.needed;
  if (low >= units_.width) return;
  const double cost = advance_cost(s, r, t);
  lower_to_sum(row(s, t) + low, at_hand.data() + offset(r, t) + low, row(s, r - 1) + low, units_.width - low, cost);
  if (r > s + 1) return;
  const int state = state_units_[s], loose_low = std::max(low, state);
  if (loose_low >= units_.width) return;
  lower_to_sum(row(s, t) + loose_low, row(r, t) + (loose_low - state), loose(s) + loose_low, units_.width - loose_low,
               cost);
}

void ChainTable::tape_first(int s, int t, const Column& at_hand) {
  const bool remembers_state = layer(s).needs_state;
  const int units = tape_units_[s] + (remembers_state ? state_units_[s] : 0);
  const int low =
      std::max(units_.to_have_free(std::max(tape_bytes(s, t, Input::remembered), layer(s).backward)), units);
  if (low >= units_.width) return;
  const double* rest = remembers_state ? row(s + 1, t) : at_hand.data() + offset(s + 1, t);
  lower_to_sum(row(s, t) + low, rest + (low - units), units_.width - low, tape_cost(s, t));
}

// Rows of larger s, and the row of remembered costs, are there.
void ChainTable::fill_at_hand(int s, int t, Column& at_hand) const {
  double* result = at_hand.data() + offset(s, t);
  std::fill(result, result + units_.width, infinite);
  const int state = state_units_[s - 1];
  if (state < units_.width) std::copy(row(s, t), row(s, t) + (units_.width - state), result + state);
  const ChainLayer& l = layer(s);
  if (l.needs_input) return;
  const int needed = units_.to_have_free(std::max(tape_bytes(s, t, Input::counted), l.backward));
  if (s == t) {
    for (int m = needed; m < units_.width; ++m) result[m] = std::min(result[m], single_cost(t));
    return;
  }
  const int units = tape_units_[s] + (l.needs_state ? state_units_[s] : 0);
  const int low = std::max(needed, units);
  if (low >= units_.width) return;
  const double* rest = l.needs_state ? row(s + 1, t) : at_hand.data() + offset(s + 1, t);
  lower_to_sum(result + low, rest + (low - units), units_.width - low, tape_cost(s, t));
}

// One more forward step on the way from layer s to place r: that of layer r-1.
void ChainTable::extend(Way& way, int s, int r, int t) const {
  const Bytes live = advance_bytes(r - 1, t, r - 1 == s ? Input::remembered : Input::counted);
  if (live > way.live) way = {live, units_.to_have_free(live)};
}

Bytes ChainTable::advance_bytes(int k, int t, Input input) const {
  const ChainLayer::Forward& forward = t == n_ ? layer(k).first : layer(k).again;
  const Bytes bytes = input == Input::remembered ? forward.advance : forward.advance_from;
  return bytes + (t == n_ ? 0 : layer(t).waiting);
}

Bytes ChainTable::tape_bytes(int k, int t, Input input) const {
  const bool remembered = input == Input::remembered;
  const ChainLayer& l = layer(k);
  if (t == n_) return remembered ? l.first.tape : l.first.tape_from;
  if (k == t) return l.waiting + (remembered ? l.fresh_retape : l.fresh_retape_from);
  return layer(t).waiting + (remembered ? l.again.tape : l.again.tape_from);
}

double ChainTable::advance_cost(int s, int r, int t) const {
  const auto& sum = t == n_ ? run_sum_ : advance_sum_;
  return sum[r - 1] - sum[s - 1];
}

double ChainTable::tape_cost(int s, int t) const {
  return t == n_ ? layer(s).run_cost : layer(s).tape_cost;
}

double ChainTable::single_cost(int t) const {
  return t == n_ ? layer(t).run_cost : layer(t).fresh_retape_cost;
}

// ---- what was chosen ------------------------------------------------------------------------------------------------

// Only the columns that were filled last are kept; others are made again from the remembered costs.
const ChainTable::Column& ChainTable::at_hand_column(int t) {
  if (at_hand_of_ != t) {
    at_hand_[0].assign(columns_[t].size(), infinite);
    for (int s = t; s >= lowest(t); --s) fill_at_hand(s, t, at_hand_[0]);
    at_hand_of_ = t;
  }
  return at_hand_[0];
}

ChainTable::Choice ChainTable::choose_remembered(int s, int t, int units) {
  const Column& at_hand = at_hand_column(t);
  double best = infinite;
  Choice choice;
  const auto consider = [&](double cost, const Choice& considered) {
    if (cost >= best) return;
    best = cost;
    choice = considered;
  };
  const int taped = tape_units_[s] + (layer(s).needs_state ? state_units_[s] : 0);
  const int needed = units_.to_have_free(std::max(tape_bytes(s, t, Input::remembered), layer(s).backward));
  if (units >= std::max(needed, taped)) {
    const double* rest = layer(s).needs_state ? row(s + 1, t) : at_hand.data() + offset(s + 1, t);
    consider(rest[units - taped] + tape_cost(s, t), {s, false});
  }
  Way way;
  for (int r = s + 1; r <= t; ++r) {
    extend(way, s, r, t);
    if (units < way.needed) break;
    if (!has(s, r - 1)) continue;
    const double cost = advance_cost(s, r, t);
    consider(at_hand[offset(r, t) + units] + row(s, r - 1)[units] + cost, {r, false});
    if (r == s + 1 && units >= state_units_[s]) {
      consider(row(r, t)[units - state_units_[s]] + loose(s)[units] + cost, {r, true});
    }
  }
  return choice;
}

bool ChainTable::chooses_to_remember(int s, int t, int units) {
  const int state = state_units_[s - 1];
  return units >= state && row(s, t)[units - state] <= at_hand_column(t)[offset(s, t) + units];
}

}  // namespace reprise::internal
