#include "plan/best.h"

#include <algorithm>
#include <cmath>

#include "plan/bound.h"
#include "plan/drops.h"
#include "plan/online.h"
#include "plan/planners.h"
#include "plan/search.h"
#include "reprise/trace/error.h"

namespace reprise {
namespace {

// Shares of the effort after which a phase ends.
constexpr double seeds_until = 0.08, fitting_until = 0.25, guided_until = 0.45, give_up_at = 0.7;
// Shares that a phase may take.
constexpr double guided_share = 0.06, pruning_share = 0.06, sharpening_share = 0.12;

class BestPlanner {
 public:
  BestPlanner(const Problem& problem, const PlanOptions& options, Effort& effort)
      : problem_(problem),
        options_(options),
        effort_(effort),
        uses_(first_uses(problem)),
        search_(problem, options.seed, effort),
        random_(options.seed ^ 0x5EED) {
    search_.lower_bound = problem.plain_cost;
    search_.on_improvement = [this](double) { report(); };
    search_.on_tick = [this] { report(); };
    for (Id m = 0; m < problem.moments; ++m) plain_.push_back(m);
  }

  BestPlan run() {
    if (!search_.offer(plain_)) {
      start_from_heuristics();
      find_something_that_fits();
      solve_program({}, false, guided_until - guided_share);
      start_from_guided_heuristics();
      prune_the_best_starts();
      if (small_program()) solve_program({}, true, effort_.spent() + sharpening_share);
      anneal_until(0.7);
      sharpen_bound();
      anneal_until(1);
    }
    return result();
  }

 private:
  // While nothing fits, part of the effort is left for finding out what would.
  [[nodiscard]] bool done() {
    return search_.proven() || effort_.spent() >= (search_.has_best() ? 1 : give_up_at);
  }

  // ---- starts ----
  void take_start(std::optional<std::vector<Id>> nodes) {
    if (!nodes) return;
    double cost = 0;
    for (const Id n : *nodes) cost += problem_.cost[n];
    search_.offer(*nodes);
    starts_.push_back({cost, std::move(*nodes)});
  }

  void start_from_heuristics() {
    using Kind = OnlineScore::Kind;
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
    limits.stop = [this, until_share] { return effort_.cancelled() || (effort_.reads_clock() && effort_.spent() > until_share); };
    return simulate_online(problem_, uses_, score, limits, guidance);
  }

  void take_classic_starts() {
    PlanOptions options = options_;
    options.segments.reset();
    options.ranges.clear();
    options.every.reset();
    options.slots.reset();
    for (const auto planner : {plan_chen_sqrt, plan_chen_greedy, plan_chain}) {
      if (effort_.reads_clock() && effort_.spent() > seeds_until) return;
      try {
        if (const auto plan = planner(problem_.trace, options)) take_start(to_nodes(problem_, *plan));
      } catch (const BadOption&) {
        // made for chains, and this is none
      }
    }
  }

  // Where every heuristic gets stuck, a first plan comes from the search; the rest builds on it.
  void find_something_that_fits() {
    if (search_.has_best()) return;
    const double unit = search_.unit_of(plain_);
    search_.penalty(5 * unit);
    search_.anneal(plain_, fitting_until, 0.3 * unit, 0.1 * unit, true);
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

  void prune_the_best_starts() {
    if (search_.has_best()) starts_.push_back({search_.best_cost(), search_.best()});
    std::stable_sort(starts_.begin(), starts_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const double until = effort_.spent() + pruning_share;
    for (const auto& [cost, nodes] : starts_) {
      if (done() || (effort_.reads_clock() && effort_.spent() > until)) break;
      search_.prune(nodes);
    }
    starts_.clear();
    search_.penalty(5 * search_.unit_of(best_or_plain()));
  }

  // ---- search ----
  [[nodiscard]] const std::vector<Id>& best_or_plain() const { return search_.has_best() ? search_.best() : plain_; }

  // Cycles from hot to cold, each from the best schedule and longer than the one before.
  void anneal_until(double share) {
    while (!done() && effort_.spent() < share) anneal_once(share);
  }
  void anneal_once(double share) {
    const double unit = search_.unit_of(best_or_plain());
    const double hot = 0.3 * unit * (cycles_ == 0 ? 1 : std::pow(10, 0.5 - 1.8 * random_.unit()));
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

  void solve_program(std::vector<Id> pivots, bool integers, double until_share) {
    if (done() || !may_solve()) return;
    const BoundProgram program(problem_, uses_, std::move(pivots));
    if (program.nonzeros() > largest_program) return;
    SolveOptions solving;
    solving.integers = integers;
    solving.seconds = effort_.seconds_until(until_share);
    solving.stop = [this] { return effort_.cancelled(); };
    auto found = program.solve(solving);
    if (found.cost) search_.lower_bound = std::max(search_.lower_bound, *found.cost);
    if (found.absent && found.complete && !integers) guidance_ = std::move(found.absent);
    report();
  }

  [[nodiscard]] bool small_program() const { return problem_.moments <= 600; }

  // When the search has had its first successes: the same program with pivots, and with whole numbers.
  void sharpen_bound() {
    if (!search_.has_best() || !effort_.reads_clock()) return;
    // As many pivots as the time allows, by what programs of this kind have been seen to take.
    const double seconds = sharpening_share * options_.time_limit.count();
    const double room = 60'000 * std::sqrt(std::max(seconds, 0.01));
    const int pivots = static_cast<int>(std::clamp(room / std::max<Id>(1, problem_.moments), 0.0, 60.0));
    std::vector<Id> list; for (int k=1;k<=pivots;++k) list.push_back((Id)((std::int64_t)problem_.moments*k/(pivots+1)));
    if (pivots > 0) solve_program(list, false, effort_.spent() + sharpening_share);
    if (!small_program()) solve_program({}, true, effort_.spent() + sharpening_share);
  }

  // ---- telling ----
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
  const std::vector<std::vector<Id>> uses_;
  Search search_;
  Random random_;
  std::vector<Id> plain_;
  std::vector<std::pair<double, std::vector<Id>>> starts_;
  std::optional<Guidance> guidance_;
  double cycle_share_ = 1.0 / 60;
  int cycles_ = 0, sharpenings_ = 0;
  double last_report_ = -1;
  std::vector<std::string> notes_;
};

}  // namespace

BestPlan plan_best(const Problem& problem, const PlanOptions& options, Effort& effort) {
  return BestPlanner(problem, options, effort).run();
}

Plan to_plan(const Problem& problem, const std::vector<Id>& nodes) {
  std::vector<Action> actions;
  actions.reserve(nodes.size());
  Id next = 0;
  for (const Id n : nodes) {
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
      case Action::Kind::replay: nodes.push_back(action.target); break;
      case Action::Kind::drop: break;
      case Action::Kind::put:
      case Action::Kind::get:
        if (plan.tiers != problem.trace.tiers || problem.node_of(action) == nowhere) return std::nullopt;
        nodes.push_back(problem.node_of(action));
        break;
    }
  }
  return nodes;
}

}  // namespace reprise
