#include "plan/search/best_overlapping.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plan/early_transfers.h"
#include "plan/search/search.h"

namespace reprise::internal {
namespace {

// Shares of the effort after which a search ends. What is left is for the best of them: where these tiers do not pay, a
// plan is to be as good as if there were none.
constexpr double without_until = 0.3, exposed_until = 0.45, hidden_until = 0.6;

// Returns the same trace without any value in these tiers, which stay in their positions.
Trace without_overlapping_tiers(const Trace& trace) {
  Trace plain = trace;
  for (Tier& tier : plain.tiers) {
    if (tier.overlaps()) tier.entries.clear();
  }
  return plain;
}

bool uses_overlapping_tiers(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [&](const Action& action) {
    const bool transfers = action.kind == Action::Kind::put || action.kind == Action::Kind::get;
    return transfers && plan.tiers[action.tier].overlaps();
  });
}

class OverlappingPlanner {
 public:
  OverlappingPlanner(const Problem& problem, const PlanOptions& options, Effort& effort)
      : problem_(problem), options_(options), effort_(effort), plain_(without_overlapping_tiers(problem.trace)) {}

  BestPlan run() {
    consider_given_start();
    search_plain(without_until);
    search(1, exposed_until);
    search(0, hidden_until);
    if (best_.plan && !done()) search_rest();
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool done() const {
    return effort_.spent() >= 1 || (best_.plan && cost_ <= best_.lower_bound * (1 + proof_tolerance));
  }

  // As the best plan was found.
  void search_rest() {
    if (!uses_overlapping_tiers(*best_.plan)) {
      search_plain(1);
    } else if (share_waited_) {
      search(*share_waited_, 1);
    }
  }
  void search_plain(double until_share) {
    const Timeline timeline(plain_);
    const Problem problem(plain_, timeline, problem_.budget);
    BestPlan found = search(problem, until_share);
    // Its bound holds only for plans without these tiers.
    best_.lower_bound = std::max(best_.lower_bound, problem_.plain_cost);
    take(std::move(found));
  }
  void search(double exposed, double until_share) {
    if (done()) return;
    const Problem problem(problem_.trace, problem_.timeline, problem_.budget, Problem::LimitedTiers::serve_a_selection,
                          exposed);
    BestPlan found = search(problem, until_share);
    best_.lower_bound = std::max(best_.lower_bound, found.lower_bound);
    take(std::move(found));
  }

  // With what is left of the effort up to this share.
  BestPlan search(const Problem& problem, double until_share) {
    PlanOptions options = options_;
    const double share = std::max(0.0, until_share - effort_.spent());
    const double begun = effort_.spent();
    const double seconds_before = effort_.seconds();
    const std::uint64_t moves_before = effort_.moves();
    if (options.moves) *options.moves = static_cast<std::uint64_t>(share * static_cast<double>(*options.moves));
    options.time_limit = std::chrono::duration<double>(effort_.seconds_until(until_share).value_or(0));
    if (start_) options.start = start_;
    if (options_.progress) {
      options.progress = [&](PlanProgress progress) {
        progress.share_done = std::min(1.0, begun + share * progress.share_done);
        progress.seconds += seconds_before;
        progress.moves += moves_before;
        options_.progress(progress);
      };
    }
    Effort effort(options);
    BestPlan found = plan_best(problem, options, effort);
    effort_.count_moves(effort.moves());
    return found;
  }

  void take(BestPlan found) {
    for (std::string& note : found.notes) {
      if (std::find(best_.notes.begin(), best_.notes.end(), note) == best_.notes.end()) {
        best_.notes.push_back(std::move(note));
      }
    }
    if (found.plan) {
      consider(with_tiers(std::move(*found.plan)));
    } else {
      best_.closest = std::move(found.closest);
    }
  }

  // It may be for other numbers.
  void consider_given_start() {
    if (!options_.start) return;
    Plan start = with_tiers(*options_.start);
    if (simulate(problem_.trace, start, {.record_live = false}).valid()) consider(std::move(start));
  }
  [[nodiscard]] Plan with_tiers(Plan plan) const {
    plan.budget = problem_.budget;
    plan.tiers = problem_.trace.tiers;
    return plan;
  }
  void consider(Plan plan) {
    Plan moved = with_early_transfers(problem_.trace, plan);
    const Simulation simulation = simulate(problem_.trace, moved, {.record_live = false});
    note_share_waited(moved, simulation);
    if (simulation.cost >= cost_) return;
    cost_ = simulation.cost;
    best_.plan = std::move(moved);
    start_ = std::move(plan);
  }
  void note_share_waited(const Plan& plan, const Simulation& simulation) {
    double all = 0;
    for (const Action& action : plan.actions) {
      if (action.kind != Action::Kind::put && action.kind != Action::Kind::get) continue;
      const TierEntry& entry = *plan.tiers[action.tier].find(action.target);
      all += action.kind == Action::Kind::put ? entry.put_time : entry.get_time;
    }
    if (all > 0) share_waited_ = std::min(1.0, simulation.waited / all);
  }

  const Problem& problem_;
  const PlanOptions& options_;
  Effort& effort_;
  const Trace plain_;
  BestPlan best_;
  double cost_ = std::numeric_limits<double>::infinity();
  std::optional<Plan> start_;           // the best plan, before its transfers were moved
  std::optional<double> share_waited_;  // of the last plan that uses these tiers
};

}  // namespace

BestPlan plan_best_overlapping(const Problem& problem, const PlanOptions& options, Effort& effort) {
  return OverlappingPlanner(problem, options, effort).run();
}

}  // namespace reprise::internal
