// The table of the chain programme: what it costs to reverse each part of a chain, by the room for what is remembered.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <vector>

#include "plan/chains/chain_programme.h"

namespace reprise::internal {

// The cost of what cannot be done.
inline constexpr double infinite = std::numeric_limits<double>::infinity();

// How bytes become units. Every step has some bytes live beside the remembered ones; `least` is the least of these over
// all steps, so that what the budget has above it is room for remembering.
struct ChainUnits {
  Bytes least = 0;
  Bytes unit = 1;
  Bytes remainder = 0;  // of the room, less than a unit
  int width = 0;        // rows have entries for 0..width-1 units
  bool exact = false;   // all sizes are multiples of the unit

  // None: the budget is below `least`.
  [[nodiscard]] static std::optional<ChainUnits> choose(const ChainProblem&, Bytes budget,
                                                        const ChainProgrammeOptions&);

  // To remember this many bytes; `width` if it is more than there can be.
  [[nodiscard]] int to_remember(Bytes) const;
  // Units that have to be free for a step that has this many bytes live.
  [[nodiscard]] int to_have_free(Bytes live) const;
};

// Layers are 1..n. A part (s, t) is the layers s..t, from state s-1 to the backward of layer s. Only the layers of a
// part that ends with n run for the first time. Costs leave out the backward of layers, which is always due once.
//
// remembered(s, t)[m]: the least cost with m units free in addition to state s-1, which is remembered already. Either
//   - advance to state r-1, reverse (r, t) from it, come back, reverse (s, r-1); or
//   - tape layer s, remember the tape, and the state if its backward needs it, and reverse (s+1, t).
// at_hand(s, t)[m]: the least cost with m units free for everything, state s-1 included. Either
//   - remember state s-1 and go on as above; or
//   - tape layer s and evict state s-1, if the backward of s does not need it, and go on.
//
// The table may have all parts, or only those that end at chosen places, and short ones: see LongParts.
class ChainTable {
 public:
  ChainTable(const ChainProblem&, const ChainUnits&, const ChainProgrammeOptions&);

  // False: stopped.
  [[nodiscard]] bool fill(const std::function<bool()>& stop);

  // at_hand(1, n).
  [[nodiscard]] const double* whole() { return at_hand_column(n_).data(); }

  // What gives remembered(s, t)[units], which is finite, for s < t.
  struct Choice {
    int place = 0;       // r, or s to tape layer s
    bool loose = false;  // state s stays remembered until the backward of s, and r is s+1
  };
  [[nodiscard]] Choice choose_remembered(int s, int t, int units);
  // Returns whether remembering state s-1 gives at_hand(s, t)[units], which is finite.
  [[nodiscard]] bool chooses_to_remember(int s, int t, int units);

  [[nodiscard]] double advance_cost(int s, int r, int t) const;
  [[nodiscard]] double tape_cost(int s, int t) const;
  [[nodiscard]] double single_cost(int t) const;
  [[nodiscard]] int state_units(int k) const { return state_units_[k]; }
  [[nodiscard]] int tape_units(int k) const { return tape_units_[k]; }

  // Bytes live beside the remembered ones: while layer k is advanced through or taped in a part that ends with t, or,
  // as a single layer (k is t), taped again.
  enum class Input { remembered, counted };
  [[nodiscard]] Bytes advance_bytes(int k, int t, Input) const;
  [[nodiscard]] Bytes tape_bytes(int k, int t, Input) const;

 private:
  // The table is filled in squares of this many rows and columns, so that what several entries of a square read is read
  // from far away once.
  static constexpr int tile = 6;

  // The most bytes live on the way to a place, and the units they need.
  struct Way {
    Bytes live = -1;
    int needed = 0;
  };
  using Column = std::vector<double>;  // the rows of s = lowest(t)..t

  [[nodiscard]] int lowest(int t) const { return ends_long_parts_[t] ? 1 : std::max(1, t - short_ + 1); }
  [[nodiscard]] bool has(int s, int t) const { return s >= lowest(t); }
  [[nodiscard]] std::ptrdiff_t offset(int s, int t) const {
    return static_cast<std::ptrdiff_t>(s - lowest(t)) * units_.width;
  }
  [[nodiscard]] const double* row(int s, int t) const { return columns_[t].data() + offset(s, t); }
  [[nodiscard]] double* row(int s, int t) { return columns_[t].data() + offset(s, t); }
  // Of a single layer right after the backward of the next one, with the state between the two still remembered.
  [[nodiscard]] const double* loose(int s) const { return loose_.data() + first_of_loose(s); }
  [[nodiscard]] std::ptrdiff_t first_of_loose(int s) const { return static_cast<std::ptrdiff_t>(s - 1) * units_.width; }
  [[nodiscard]] const ChainLayer& layer(int k) const { return layers_[k - 1]; }
  void extend(Way&, int s, int r, int t) const;

  [[nodiscard]] bool fill_all(const std::function<bool()>& stop);
  [[nodiscard]] bool fill_some(const std::function<bool()>& stop);
  void fill_short(int t, Column& at_hand);
  void fill_long(const std::vector<int>& ends, int s);
  void begin_column(int t, Column& at_hand);
  void fill_single(int t, Column& at_hand);
  void fill_square(int lowest, int highest, int first, int last);
  void advance_and_come_back(int s, int r, int t, const Column& at_hand, Way&);
  void tape_first(int s, int t, const Column& at_hand);
  void fill_at_hand(int s, int t, Column& at_hand) const;
  const Column& at_hand_column(int t);

  const std::vector<ChainLayer>& layers_;
  const int n_;
  const int short_;  // parts of at most this many layers are there
  const ChainUnits units_;
  std::vector<double> advance_sum_, run_sum_;  // of layers 1..k
  std::vector<int> state_units_, tape_units_;  // by state and by layer
  std::vector<char> ends_long_parts_;          // by t: all parts that end with it are there
  std::vector<Column> columns_;                // by t
  std::vector<double> loose_;
  std::array<Column, tile> at_hand_;  // of the columns that are being filled; then [0] is column at_hand_of_
  int at_hand_of_ = 0;
};

}  // namespace reprise::internal
