// Local search on timetables: prune, and simulated annealing.
//
// Energy is cost plus a penalty for every occurrence above the budget, so the search walks through timetables that do
// not fit to better ones that do. The penalty's weight adapts so that it spends time on both sides of the border.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "plan/search/effort.h"
#include "plan/search/problem.h"
#include "plan/search/random.h"
#include "plan/search/timetable.h"

namespace reprise::internal {

// A cost this close to its bound counts as proven: the tolerance of the solvers behind the bounds.
inline constexpr double proof_tolerance = 1e-6;

class Search {
 public:
  Search(const Problem& problem, std::uint64_t seed, Effort& effort);

  // Called with each new best; the cost.
  std::function<void(double)> on_improvement;
  // Called now and then while annealing.
  std::function<void()> on_tick;
  // Known from elsewhere: no timetable costs less. The search ends when it gets there.
  double lower_bound = 0;

  [[nodiscard]] bool has_best() const { return best_cost_ < std::numeric_limits<double>::infinity(); }
  [[nodiscard]] double best_cost() const { return best_cost_; }
  [[nodiscard]] const std::vector<Id>& best() const { return best_; }
  [[nodiscard]] bool proven() const { return has_best() && best_cost_ <= lower_bound * (1 + proof_tolerance); }

  // Takes a timetable into account: it becomes the best if it fits and costs less. Returns whether it fits.
  bool offer(const std::vector<Id>& nodes);
  // Removes repeats, the most expensive first, as long as the timetable fits; takes the result into account and returns
  // it. A timetable that does not fit is returned as it is.
  std::vector<Id> prune(const std::vector<Id>& nodes);
  // From `start` until the share of effort is spent, or something fits. Temperatures are in units of energy, which is
  // cost over plain cost.
  enum class Until { spent, fits };
  void anneal(const std::vector<Id>& start, double until_share, double hot, double cold, Until = Until::spent);
  // Returns the average repeat of the timetable as a share of the plain cost: the natural unit of temperature.
  [[nodiscard]] double unit_of(const std::vector<Id>& nodes) const;
  void penalty(double weight) { penalty_ = weight; }
  // Returns the timetable with the smallest peak that annealing met while none fitted.
  [[nodiscard]] const std::vector<Id>& lowest() const { return lowest_; }
  [[nodiscard]] Bytes lowest_peak() const { return lowest_peak_; }
  // Returns the timetable with which the last annealing ended, whether it fits or not.
  [[nodiscard]] std::vector<Id> current() const { return timetable_.nodes(); }

 private:
  [[nodiscard]] double energy() const;
  void note();
  void note_peak();

  // Moves: each changes the timetable; false: it cannot be done, whatever was changed so far has to be undone.
  bool move();
  bool drop_somewhere();
  bool drop_at_overflow();
  bool drop_across(Stay stay, Occurrence across);
  bool shift(Occurrence repeat);
  bool swap(Occurrence repeat);
  bool remove(Occurrence repeat);
  bool remove_with_ancestors(Occurrence repeat);
  bool remove_somehow(Occurrence repeat);
  void repair(int times);
  bool repaired_sometimes();

  // Inserts a repeat of the node right before `at`, and before it repeats of those inputs that would otherwise have to
  // stay long. `gap_start`: the last occurrence that sees the value resident, where a copy can be taken.
  bool pull(Id node, Occurrence at, Occurrence gap_start);
  bool pull_get(Id get, Occurrence at, Occurrence gap_start);
  [[nodiscard]] Occurrence place_of_put(Id value, Occurrence at, Occurrence gap_start);
  bool pull_inputs(Occurrence pulled);
  [[nodiscard]] Id choose_way(Id value);
  void remove_unused_ancestors(Id value, Id before);

  [[nodiscard]] Stay random_stay();
  [[nodiscard]] Occurrence random_between(Occurrence after, Occurrence up_to);
  [[nodiscard]] Occurrence random_overflow();

  const Problem& problem_;
  Timetable timetable_;
  Random random_;
  Effort& effort_;
  double cost_scale_, bytes_scale_;
  double penalty_ = 1;
  int pulls_left_ = 0, depth_ = 0;
  std::vector<Id> best_;
  double best_cost_ = std::numeric_limits<double>::infinity();
  std::vector<Id> lowest_;
  Bytes lowest_peak_ = std::numeric_limits<Bytes>::max();
  std::vector<Occurrence> uses_;
};

}  // namespace reprise::internal
