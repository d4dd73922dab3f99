#include "plan/chains/chain_plan.h"

#include <algorithm>

#include "plan/search/recomputer.h"

namespace reprise::internal {
namespace {

class Translator {
 public:
  Translator(const Trace& trace, const Timeline& timeline, const ChainShape& chain, std::optional<Id> tier)
      : trace_(trace),
        chain_(chain),
        tier_(tier),
        recomputer_(trace, timeline),
        outlasts_forward_(chain.kept),
        stored_(chain.layers.size() + 1, 0) {
    for (const LayerShape& layer : chain.layers) {
      if (layer.state) outlasts_forward_[*layer.state] = 1;
      for (const Id v : layer.tape) outlasts_forward_[v] = 1;
    }
  }

  Plan translate(const ChainSteps& steps, Bytes budget) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const ChainStep& step = steps[i];
      const bool backward_next = i + 1 < steps.size() && steps[i + 1].kind == ChainStep::Kind::backward;
      switch (step.kind) {
        case ChainStep::Kind::advance: advance(step.at); break;
        case ChainStep::Kind::tape: tape(step.at, !backward_next); break;
        case ChainStep::Kind::backward: backward(step.at); break;
        case ChainStep::Kind::store: store(step.at, step.level); break;
        case ChainStep::Kind::load: load(step.at, step.level); break;
        case ChainStep::Kind::discard: discard(step.at, step.level); break;
      }
    }
    return recomputer_.finish(tier_ ? trace_.tiers : std::vector<Tier>{}, budget);
  }

 private:
  [[nodiscard]] const LayerShape& layer(Id at) const { return chain_.layers[at - 1]; }
  // Returns the value that is this state; none: it is kept anyway.
  [[nodiscard]] std::optional<Id> state(Id at) const { return at == 0 ? chain_.input : layer(at).state; }

  void advance(Id at) {
    if (!recomputer_.has_run(layer(at).first)) {
      run_forward(at);
      evict_tape(at);
    } else if (const auto made = state(at)) {
      recomputer_.recompute(*made);
    }
    evict_unless_stored(at - 1);
  }

  // The state is wanted if the schedule goes on from it.
  void tape(Id at, bool goes_on) {
    if (!recomputer_.has_run(layer(at).first)) {
      run_forward(at);
    } else {
      wanted_ = layer(at).tape;
      if ((layer(at).needs_state || goes_on) && state(at)) wanted_.push_back(*state(at));
      recomputer_.recompute(wanted_);
    }
    if (!layer(at).needs_input) evict_unless_stored(at - 1);
  }

  void backward(Id at) {
    recomputer_.run_until(layer(at).backward_end);
    evict_tape(at);
    evict_unless_stored(at);
    evict_unless_stored(at - 1);
  }

  void store(Id at, Id level) {
    const auto value = state(at);
    if (value) recomputer_.recompute(*value);  // no action at all where it is at hand, as it should be
    if (level == 1 && tier_ && value && trace_.tiers[*tier_].find(*value)) {
      recomputer_.put(*value, *tier_);
    } else {
      ++stored_[at];
    }
  }

  void load(Id at, Id) {
    if (const auto value = state(at)) recomputer_.recompute(*value);
  }

  void discard(Id at, Id level) {
    const auto value = state(at);
    if (level == 1 && tier_ && value && trace_.tiers[*tier_].find(*value)) return recomputer_.evict_copy(*value);
    --stored_[at];
    evict_unless_stored(at);
  }

  // ---- pieces -------------------------------------------------------------------------------------------------------

  void run_forward(Id at) {
    recomputer_.run_until(layer(at).end);
    for (Id m = layer(at).first; m < layer(at).end; ++m) {
      for (const Id v : trace_.outputs(m)) {
        if (!outlasts_forward_[v]) recomputer_.evict(v);
      }
    }
  }

  void evict_tape(Id at) {
    for (const Id v : layer(at).tape) recomputer_.evict(v);
  }

  void evict_unless_stored(Id at) {
    if (const auto value = state(at); value && stored_[at] == 0) recomputer_.evict(*value);
  }

  const Trace& trace_;
  const ChainShape& chain_;
  const std::optional<Id> tier_;
  Recomputer recomputer_;
  std::vector<char> outlasts_forward_;  // by value: a state, of a tape, or kept
  std::vector<int> stored_;             // by state: how many times it is remembered in memory
  std::vector<Id> wanted_;
};

}  // namespace

Plan plan_of_steps(const Trace& trace, const Timeline& timeline, const ChainShape& chain, const ChainSteps& steps,
                   std::optional<Id> tier, Bytes budget) {
  return Translator(trace, timeline, chain, tier).translate(steps, budget);
}

SlotPlan plan_with_most_slots(const Trace& trace, const PlanOptions& options, int low, int high,
                              const std::function<Plan(int)>& plan_with) {
  const auto attempt = [&](int slots) {
    Plan plan = plan_with(slots);
    const Bytes peak = simulate(trace, plan, {.record_live = false, .check_budget = false}).peak;
    return SlotPlan{std::move(plan), slots, peak};
  };
  SlotPlan best = attempt(high--);
  if (best.peak <= options.budget) return best;
  while (low <= high && !(options.cancel && options.cancel->load(std::memory_order_relaxed))) {
    const int middle = low + (high - low) / 2;
    SlotPlan plan = attempt(middle);
    const bool fits = plan.peak <= options.budget;
    // A plan that fits has more slots than every earlier one that did.
    if (fits || plan.peak < best.peak) best = std::move(plan);
    if (fits) {
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

}  // namespace reprise::internal
