#include "plan/search/best.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/bounds/bound.h"
#include "plan/drops.h"
#include "plan/planners.h"
#include "plan/search/online_scores.h"
#include "plan/search/search.h"
#include "plan/search/smallest_budget.h"
#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

// Shares of the effort after which a phase ends.
constexpr double seeds_until = 0.08, fitting_until = 0.2, lowering_until = 0.4, programs_until = 0.45,
                 guided_until = 0.5, stop_early_at = 0.5, stop_without_plan_at = 0.7;
// Shares that a phase may take.
constexpr double guided_share = 0.05, pruning_share = 0.03, lineage_share = 0.1, sharpening_share = 0.12;
// Additions that the programme for chains may take: about 0.06 s.
constexpr double chain_work = 1e8;
// Traces of this many moments get an integer program at once: it often proves the first good plan optimal.
constexpr Id small_enough = 600;

class BestPlanner {
 public:
  BestPlanner(const Problem& problem, const PlanOptions& options, Effort& effort)
      : problem_(problem),
        options_(options),
        effort_(effort),
        bounded_(problem.trace, problem.timeline, problem.budget, Problem::LimitedTiers::serve_all, 0),
        uses_(first_uses(problem)),
        search_(problem, options.seed, effort),
        random_(options.seed ^ 0x5EED) {
    search_.lower_bound = quick_bound(bounded_, uses_);
    search_.on_improvement = [this](double) { report(); };
    search_.on_tick = [this] { report(); };
    for (Id m = 0; m < problem.moments; ++m) plain_.push_back(m);
  }

  BestPlan run() {
    if (!search_.offer(plain_)) {
      take_given_start();
      start_from_heuristics();
      find_something_that_fits();
      prune_the_best_starts();
      for (const int pivots : {0, 1}) {
        solve_program(pivots, Numbers::real, programs_until);
        start_from_guided_heuristics();
        prune_the_best_starts();
      }
      if (problem_.moments <= small_enough) solve_program(1, Numbers::whole, effort_.spent() + sharpening_share);
      compete();
      anneal_until(0.7);
      sharpen_bound();
      anneal_until(1);
    }
    return result();
  }

 private:
  // While nothing fits, part of the effort is left for finding the smallest budget.
  [[nodiscard]] bool done() {
    return search_.proven() || effort_.spent() >= (search_.has_best() ? 1 : stop_without_plan_at);
  }

  // ---- starts ----
  void take_start(std::optional<std::vector<Id>> nodes) {
    if (!nodes || !search_.offer(*nodes)) return;
    starts_.push_back({cost_of(*nodes), std::move(*nodes)});
  }

  // Whether it fits or not, it has its try as a lineage.
  void take_given_start() {
    auto nodes = options_.start ? to_nodes(problem_, *options_.start) : std::nullopt;
    if (!nodes || !Timetable(problem_).load(*nodes)) return;
    lineages_.push_back(search_.offer(*nodes) ? search_.prune(*nodes) : std::move(*nodes));
  }

  void start_from_heuristics() {
    using Kind = OnlineScore::Kind;
    // One pass, whatever the size: where everything else is too slow, this is the plan.
    take_plan(plan_chen_sqrt(problem_.trace, options_));
    // The known online heuristics come first and are given time: the result is never worse than any of them.
    for (const Kind kind : {Kind::dtr, Kind::local, Kind::msps}) take_start(simulate({kind}, 0.3, nullptr));
    take_classic_starts();
    for (const Kind kind : {Kind::lru, Kind::largest}) take_start(simulate({kind}, seeds_until, nullptr));
    for (const OnlineScore& score : oracle_scores()) {
      if (effort_.reads_clock() && effort_.spent() > seeds_until) break;
      take_start(simulate(score, 2 * seeds_until, nullptr));
    }
  }

  std::optional<std::vector<Id>> simulate(const OnlineScore& score, double until_share, const Guidance* guidance) {
    effort_.count_moves(1);
    OnlineLimits limits;
    limits.stop = [this, until_share] {
      return effort_.cancelled() || (effort_.reads_clock() && effort_.spent() > until_share);
    };
    return simulate_online(problem_, uses_, score, limits, guidance);
  }

  void take_classic_starts() {
    const auto chain = [](const Trace& trace, const PlanOptions& o) { return plan_chain_seed(trace, o, chain_work); };
    using Planner = std::optional<Plan> (*)(const Trace&, const PlanOptions&);
    for (const Planner planner : {Planner(plan_chen_greedy), Planner(chain)}) {
      if (effort_.reads_clock() && effort_.spent() > seeds_until) return;
      take_plan(planner(problem_.trace, options_));
    }
  }
  void take_plan(const std::optional<Plan>& plan) {
    if (plan) take_start(to_nodes(problem_, *plan));
  }

  // Where every heuristic gets stuck, a first plan comes from the search, directly or over larger budgets.
  void find_something_that_fits() {
    if (search_.has_best()) return;
    const std::vector<Id> from = lineages_.empty() ? plain_ : lineages_.front();  // the given start
    const double unit = search_.unit_of(from);
    search_.penalty(5 * unit);
    search_.anneal(from, fitting_until, 0.3 * unit, 0.1 * unit, Search::Until::fits);
    if (!search_.has_best()) {
      const Plan lower = find_smallest(problem_.trace, problem_.timeline, options_, effort_, lowering_until,
                                       problem_.budget, to_plan(problem_, search_.lowest()));
      if (const auto nodes = to_nodes(problem_, lower)) search_.offer(*nodes);
    }
    if (search_.has_best()) starts_.push_back({search_.best_cost(), search_.best()});
  }

  void start_from_guided_heuristics() {
    if (!guidance_) return;
    const double until = std::min(guided_until, effort_.spent() + guided_share);
    for (const OnlineScore& score : oracle_scores()) {
      for (const double weight : {1.0, 0.8}) {
        if (done() || (effort_.reads_clock() && effort_.spent() > until)) return;
        guidance_->weight = weight;
        take_start(simulate(score, guided_until, &*guidance_));
      }
    }
  }

  // The best of the starts collected since the last time becomes a lineage of its own.
  void prune_the_best_starts() {
    std::stable_sort(starts_.begin(), starts_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const double until = effort_.spent() + pruning_share;
    double best_cost = std::numeric_limits<double>::infinity();
    std::vector<Id> best;
    for (const auto& [cost, nodes] : starts_) {
      if (done() || (effort_.reads_clock() && effort_.spent() > until)) break;
      std::vector<Id> pruned = search_.prune(nodes);
      if (cost_of(pruned) >= best_cost) continue;
      best_cost = cost_of(pruned);
      best = std::move(pruned);
    }
    starts_.clear();
    if (!best.empty()) lineages_.push_back(std::move(best));
  }
  [[nodiscard]] double cost_of(const std::vector<Id>& nodes) const {
    double cost = 0;
    for (const Id n : nodes) cost += problem_.cost[n];
    return cost;
  }

  // ---- search ----
  [[nodiscard]] const std::vector<Id>& best_or_plain() const { return search_.has_best() ? search_.best() : plain_; }

  // Starts of different kinds lead into different valleys, and the best start does not always lead into the deepest
  // one: each lineage has its try.
  void compete() {
    for (std::size_t i = 0; i < lineages_.size() && lineages_.size() > 1 && !done(); ++i) {
      Search lineage(problem_, options_.seed + 1 + i, effort_);
      lineage.lower_bound = search_.lower_bound;
      lineage.on_tick = search_.on_tick;
      const double unit = lineage.unit_of(lineages_[i]);
      lineage.penalty(5 * unit);
      lineage.anneal(lineages_[i], effort_.spent() + lineage_share, 0.3 * unit, 0.003 * unit);
      if (lineage.has_best()) search_.offer(lineage.best());
    }
    lineages_.clear();
    search_.penalty(5 * search_.unit_of(best_or_plain()));
  }

  // Cycles from hot to cold, each from the best timetable and longer than the one before.
  void anneal_until(double share) {
    while (!done() && effort_.spent() < share) anneal_once(share);
  }
  void anneal_once(double share) {
    const double unit = search_.unit_of(best_or_plain());
    const double hot = 0.3 * unit * (cycles_ == 0 ? 1 : std::pow(10, 1.0 - 2.3 * random_.unit()));
    const double until = std::min(share, effort_.spent() + cycle_share_);
    const std::vector<Id> start = search_.has_best() ? search_.best() : cycles_ == 0 ? plain_ : search_.current();
    search_.anneal(start, until, hot, hot / 100);
    cycle_share_ *= 1.4;
    ++cycles_;
  }

  // ---- bounds ----
  [[nodiscard]] bool may_solve() {
    if (!options_.bounds) {
      note("lower bounds by linear programming are switched off: the bound is weaker");
      return false;
    }
    if (!solver_available()) {
      note(solver_problem() + ": the bound is weaker");
      return false;
    }
    return true;
  }
  void note(std::string sentence) {
    if (std::find(notes_.begin(), notes_.end(), sentence) == notes_.end()) notes_.push_back(std::move(sentence));
  }

  // Returns the moment at which the plain order needs most, and others spread over the stretch where it is above the
  // budget.
  [[nodiscard]] std::vector<Id> pivots(int count) const {
    if (count == 0) return {};
    const Timetable plain(problem_);
    const auto live = [&](Id m) { return plain.live_at(plain.first_of(m)); };
    Id peak = 0, first = problem_.moments, last = 0;
    for (Id m = 0; m < problem_.moments; ++m) {
      if (live(m) > live(peak)) peak = m;
      if (live(m) <= problem_.budget) continue;
      first = std::min(first, m);
      last = m;
    }
    std::vector<Id> chosen{peak};
    for (int i = 1; i < count; ++i) {
      chosen.push_back(first + static_cast<Id>(static_cast<std::int64_t>(last - first) * i / count));
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
  }

  // By what programs of this kind have been seen to take.
  [[nodiscard]] bool affordable(const BoundProgram& program, double until_share) {
    if (!fits_memory(program.nonzeros())) return false;
    const auto left = effort_.seconds_until(until_share);
    if (!left) return program.nonzeros() <= largest_program_without_clock;
    const double seconds = 0.2 * std::pow(static_cast<double>(program.nonzeros()) / 18'000, 1.5);
    return (program.has_pivots() ? seconds : seconds / 5) < *left;
  }

  // In this part of the memory there is.
  [[nodiscard]] bool fits_memory(std::size_t nonzeros, Bytes part = 1) {
    const auto memory = options_.bounds_memory ? std::optional(*options_.bounds_memory / part) : std::nullopt;
    if (nonzeros <= largest_program_within(memory)) return true;
    if (memory) note("a program for lower bounds did not fit its memory: the bound is weaker");
    return false;
  }
  // Estimated for this many pivots from what none and one took: making a program takes memory as well.
  [[nodiscard]] std::size_t expected_nonzeros(int pivot_count) const {
    const auto [without, with_one] = nonzeros_seen_;
    return without + (with_one > without ? with_one - without : 0) * static_cast<std::size_t>(pivot_count);
  }

  enum class Numbers { real, whole };
  void solve_program(int pivot_count, Numbers numbers, double until_share) {
    guidance_.reset();
    if (done() || !may_solve()) return;
    const BoundProgram program(bounded_, uses_, pivots(pivot_count));
    if (pivot_count <= 1) nonzeros_seen_[pivot_count] = program.nonzeros();
    if (!affordable(program, until_share)) return;
    SolveOptions solving;
    solving.integers = numbers == Numbers::whole;
    solving.seconds = effort_.seconds_until(until_share);
    const bool counts = solving.integers && !effort_.reads_clock();
    solving.stop = [this, counts, until_share] {
      if (!counts) return effort_.cancelled();
      // Whole numbers can take the solver any time, and how often it asks is the same every time.
      effort_.count_move();
      report();
      return effort_.spent() >= until_share;
    };
    auto found = program.solve(solving);
    if (found.cost) raise_bound(*found.cost);
    if (found.complete && numbers == Numbers::real) {
      guidance_ = std::move(found.absent);
      most_pivots_solved_ = std::max(most_pivots_solved_, pivot_count);
    }
    report();
  }

  // A bound above the cost of a plan is a mistake of the solver, and nothing it says is worth keeping.
  void raise_bound(double bound) {
    if (search_.has_best() && bound > search_.best_cost() * (1 + proof_tolerance)) {
      return note("the solver returned a bound above the cost of a valid plan; it was not used");
    }
    search_.lower_bound = std::max(search_.lower_bound, bound);
  }

  // When the search has had its first successes: with as many pivots as the time allows, and in whole numbers. No plan
  // gets better by that, so it is to take little memory.
  void sharpen_bound() {
    constexpr Bytes part = 16, part_for_branching = 4 * part;
    if (!search_.has_best() || !effort_.reads_clock()) return;
    const double until = effort_.spent() + sharpening_share;
    for (const int count : {24, 12, 6, 3, 1, 0}) {
      if (done() || !may_solve() || count <= most_pivots_solved_) break;
      if (!fits_memory(expected_nonzeros(count), part)) continue;
      if (!affordable(BoundProgram(bounded_, uses_, pivots(count)), until)) continue;
      solve_program(count, Numbers::real, until);
      break;
    }
    if (problem_.moments > small_enough && problem_.moments <= 4 * small_enough &&
        fits_memory(expected_nonzeros(1), part_for_branching)) {
      solve_program(1, Numbers::whole, effort_.spent() + sharpening_share);
    }
  }

  // ---- progress ----
  void report() {
    if (!options_.progress) return;
    PlanProgress progress;
    progress.share_done = std::min(1.0, effort_.spent());
    if (effort_.reads_clock()) {
      progress.seconds = effort_.seconds();
      if (progress.seconds < last_report_ + 0.05) return;
      last_report_ = progress.seconds;
    }
    progress.moves = effort_.moves();
    const double plain = problem_.plain_cost > 0 ? problem_.plain_cost : 1;
    if (search_.has_best()) progress.cost_ratio = search_.best_cost() / plain;
    progress.lower_bound = search_.lower_bound / plain;
    options_.progress(progress);
  }

  BestPlan result() {
    BestPlan best;
    best.lower_bound = search_.lower_bound;
    best.notes = std::move(notes_);
    if (search_.has_best()) {
      best.plan = to_plan(problem_, search_.best());
    } else {
      best.closest = to_plan(problem_, search_.lowest());
    }
    return best;
  }

  const Problem& problem_;
  const PlanOptions& options_;
  Effort& effort_;
  const Problem bounded_;  // as the bounds see it
  const std::vector<std::vector<Id>> uses_;
  Search search_;
  Random random_;
  std::vector<Id> plain_;
  std::vector<std::pair<double, std::vector<Id>>> starts_;
  std::vector<std::vector<Id>> lineages_;
  std::optional<Guidance> guidance_;
  double cycle_share_ = 1.0 / 60;
  int cycles_ = 0, most_pivots_solved_ = -1;
  std::array<std::size_t, 2> nonzeros_seen_ = {};  // of the programs without pivots, and with one
  double last_report_ = -1;
  std::vector<std::string> notes_;
};

// Its terms may be others.
bool same_tier(const Trace& trace, const Plan& plan, Id tier) {
  const auto count = static_cast<Id>(std::min(trace.tiers.size(), plan.tiers.size()));
  return 0 <= tier && tier < count && trace.tiers[tier].name == plan.tiers[tier].name;
}

}  // namespace

BestPlan plan_best(const Problem& problem, const PlanOptions& options, Effort& effort) {
  return BestPlanner(problem, options, effort).run();
}

Plan to_plan(const Problem& problem, const std::vector<Id>& nodes) {
  // A copy without a get would stay in its tier, where the next put of the value finds it.
  const std::vector<Id> useful = without_useless_repeats(problem, nodes);
  std::vector<Action> actions;
  actions.reserve(useful.size());
  Id next = 0;
  for (const Id n : useful) {
    actions.push_back(problem.action(n, n == next));
    if (n == next) ++next;
  }
  return with_drops(problem.trace, problem.timeline, problem.trace.tiers, actions, problem.budget);
}

std::optional<std::vector<Id>> to_nodes(const Problem& problem, const Plan& plan) {
  std::vector<Id> nodes;
  nodes.reserve(plan.actions.size());
  for (const Action& action : plan.actions) {
    switch (action.kind) {
      case Action::Kind::run:
      case Action::Kind::replay:
        if (action.target < 0 || action.target >= problem.moments) return std::nullopt;
        nodes.push_back(action.target);
        break;
      case Action::Kind::drop: break;
      case Action::Kind::put:
      case Action::Kind::get:
        if (!same_tier(problem.trace, plan, action.tier) || problem.node_of(action) == nowhere) return std::nullopt;
        nodes.push_back(problem.node_of(action));
        break;
    }
  }
  return nodes;
}

}  // namespace reprise::internal
