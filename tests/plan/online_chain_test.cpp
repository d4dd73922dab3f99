#include "plan/chains/online_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;
namespace {

using States = std::vector<std::int32_t>;
using Kind = ChainStep::Kind;

// Executes steps with nothing but the remembered states at hand, and says what went wrong first.
class Machine {
 public:
  Machine(std::span<const std::int32_t> remembered, std::int32_t layers, std::int32_t slots)
      : remembered_(remembered.begin(), remembered.end()), left_(layers), slots_(static_cast<std::size_t>(slots)) {}

  std::string run(const ChainSteps& steps) {
    for (const ChainStep& step : steps) {
      if (!possible(step)) {
        return "kind " + std::to_string(static_cast<int>(step.kind)) + " at " + std::to_string(step.at);
      }
      if (remembered_.size() > slots_) return "more states than slots at " + std::to_string(step.at);
    }
    if (left_ != 0) return "backward stopped after layer " + std::to_string(left_ + 1);
    if (!remembered_.empty()) return "state " + std::to_string(*remembered_.begin()) + " is remembered at the end";
    return "";
  }

 private:
  bool possible(const ChainStep& step) {
    if (step.level != 0) return false;
    switch (step.kind) {
      case Kind::advance: return go(step.at);
      case Kind::tape: return !std::exchange(taped_, step.at) && go(step.at);
      case Kind::backward: return left_-- == step.at && std::exchange(taped_, std::nullopt) == step.at;
      case Kind::store: return at_hand_ == step.at && remembered_.insert(step.at).second;
      case Kind::load: at_hand_ = step.at; return remembered_.contains(step.at);
      case Kind::discard: return remembered_.erase(step.at) == 1;
    }
    return false;
  }

  bool go(std::int32_t layer) { return layer <= left_ && std::exchange(at_hand_, layer) == layer - 1; }

  std::set<std::int32_t> remembered_;
  std::optional<std::int32_t> at_hand_, taped_;
  std::int32_t left_;
  std::size_t slots_;
};

// revolve_steps, each number asked for once.
class Costs {
 public:
  std::int64_t operator()(std::int32_t layers, std::int32_t slots) {
    const auto row = static_cast<std::size_t>(slots), column = static_cast<std::size_t>(layers);
    if (rows_.size() <= row) rows_.resize(row + 1);
    if (rows_[row].size() <= column) rows_[row].resize(std::max(column + 1, rows_[row].size() * 2), -1);
    std::int64_t& cost = rows_[row][column];
    if (cost < 0) cost = revolve_steps(layers, slots);
    return cost;
  }

 private:
  std::vector<std::vector<std::int64_t>> rows_;
};

// The forward steps of backward, kept up to date while forward goes on.
class Books {
 public:
  Books(Costs& costs, std::int32_t slots) : costs_(costs), slots_(slots) {}

  std::int64_t after(const OnlineChain& chain, const OnlineChain::Decision& decision) {
    const auto states = chain.remembered();
    const auto last = static_cast<std::int32_t>(states.size()) - 1;
    if (decision.discard) {
      before_last_ = 0;
      for (std::int32_t i = 0; i < last; ++i) before_last_ += stretch(states, i);
    } else if (decision.store) {
      before_last_ += stretch(states, last - 1);
    }
    return before_last_ + costs_(chain.reached() - states.back(), slots_ - last);
  }

 private:
  std::int64_t stretch(std::span<const std::int32_t> states, std::int32_t i) {
    const auto position = static_cast<std::size_t>(i);
    return costs_(states[position + 1] - states[position], slots_ - i);
  }

  Costs& costs_;
  std::int32_t slots_;
  std::int64_t before_last_ = 0;
};

std::int64_t steps_of(const ChainSteps& steps) {
  return static_cast<std::int64_t>(forward_steps(steps));
}

OnlineChain chain_after(std::int32_t layers, std::int32_t slots) {
  OnlineChain chain(slots);
  while (chain.reached() < layers) (void)chain.advance();
  return chain;
}

States states_of(const OnlineChain& chain) {
  return {chain.remembered().begin(), chain.remembered().end()};
}

// What is compared with revolve_steps: all forward steps but the one that revolve, knowing the end, does not make.
double ratio(std::int64_t reached, std::int64_t backward, std::int64_t revolve) {
  return static_cast<double>(reached - 1 + backward) / static_cast<double>(revolve);
}

TEST(OnlineChain, IsWithinAFifthOfRevolveWhereverAChainOfUpTo10000LayersEnds) {
  Costs costs;
  for (const std::int32_t slots :
       {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 32, 50, 64, 100, 139, 140, 141, 142, 300, 1000, 5000, 9999, 10000}) {
    OnlineChain chain(slots);
    Books books(costs, slots);
    double worst = 0;
    for (std::int32_t layers = 1; layers <= 10000; ++layers) {
      const OnlineChain::Decision decision = chain.advance();
      const std::int64_t backward = books.after(chain, decision), revolve = costs(layers, slots);
      ASSERT_LE(10 * (layers - 1 + backward), 12 * revolve) << layers << " layers, " << slots << " slots";
      ASSERT_GE(layers - 1 + backward, revolve) << layers << " layers, " << slots << " slots";
      ASSERT_LT(layers < 1000 ? 1 : ratio(layers, backward, revolve), 1.05)
          << layers << " layers, " << slots << " slots";
      worst = std::max(worst, ratio(layers, backward, revolve));
      if (layers <= 12 || layers % 3331 == slots % 3331 || (layers < 1000 && layers % 97 == 0)) {
        ASSERT_EQ(steps_of(chain.finish()), backward) << layers << " layers, " << slots << " slots";
      }
    }
    // Behind the first states that cannot all be remembered. No longer the worst place where there are many slots.
    if (slots <= 64) {
      EXPECT_DOUBLE_EQ(worst, (slots + 3.0) / (slots + 2.0)) << slots << " slots";
    }
  }
}

TEST(OnlineChain, WithOneAndTwoSlotsIsWithinTheBoundsOfItsHeader) {
  Costs costs;
  for (const auto& [slots, bound] : {std::pair(1, 4.0 / 3), std::pair(2, 1.375)}) {
    OnlineChain chain(slots);
    Books books(costs, slots);
    for (std::int32_t layers = 1; layers <= 10000; ++layers) {
      const OnlineChain::Decision decision = chain.advance();
      const std::int64_t backward = books.after(chain, decision);
      ASSERT_LE(ratio(layers, backward, costs(layers, slots)), bound) << layers << " layers, " << slots << " slots";
    }
  }
}

// Every sequence of decisions there is: after each layer a state may be stored, and any other but 0 evicted for it.
TEST(OnlineChain, NoRuleIsBetterWithThreeSlotsOnChainsOfUpToFiveLayers) {
  std::map<States, double> worst = {{{0}, 0}};
  for (std::int32_t layers = 1; layers <= 5; ++layers) {
    std::map<States, double> next;
    const auto add = [&](const States& states, double so_far) {
      const double here = ratio(layers, steps_of(reverse_from(states, layers, 3)), revolve_steps(layers, 3));
      const auto [place, fresh] = next.try_emplace(states, std::max(so_far, here));
      if (!fresh) place->second = std::min(place->second, std::max(so_far, here));
    };
    for (const auto& [states, so_far] : worst) {
      add(states, so_far);
      for (std::size_t i = 1; i <= states.size(); ++i) {
        States other = states;
        if (i < states.size()) other.erase(other.begin() + static_cast<std::ptrdiff_t>(i));
        other.push_back(layers);
        if (other.size() <= 3) add(other, so_far);
      }
    }
    worst = next;
  }
  double least = 2;
  for (const auto& [states, ratio_of_states] : worst) least = std::min(least, ratio_of_states);
  EXPECT_DOUBLE_EQ(least, 1.2);
}

TEST(OnlineChain, DecisionsSayWhatIsRememberedAndBackwardCanBeExecutedFromThere) {
  for (const std::int32_t slots : {1, 2, 3, 4, 5, 7, 10, 33, 200}) {
    OnlineChain chain(slots);
    States remembered = {0};
    for (std::int32_t layers = 0; layers <= 150; ++layers) {
      if (layers > 0) {
        const OnlineChain::Decision decision = chain.advance();
        if (decision.discard) {
          ASSERT_TRUE(decision.store);
          ASSERT_GT(*decision.discard, 0);
          ASSERT_EQ(std::erase(remembered, *decision.discard), 1u) << layers << " layers, " << slots << " slots";
        }
        if (decision.store) remembered.push_back(layers);
      }
      ASSERT_EQ(chain.reached(), layers);
      ASSERT_EQ(states_of(chain), remembered);
      ASSERT_LE(remembered.size(), static_cast<std::size_t>(slots));
      ASSERT_EQ(Machine(remembered, layers, slots).run(chain.finish()), "") << layers << " layers, " << slots;
    }
  }
}

TEST(OnlineChain, RemembersEveryStateWhileThereAreSlots) {
  OnlineChain chain(100);
  for (std::int32_t layers = 1; layers < 100; ++layers) {
    EXPECT_EQ(chain.advance(), (OnlineChain::Decision{.store = true, .discard = {}}));
    EXPECT_EQ(layers - 1 + steps_of(chain.finish()), revolve_steps(layers, 100));
  }
  EXPECT_EQ(chain.advance(), OnlineChain::Decision{});
}

TEST(OnlineChain, WithOneSlotNeverRemembersMoreThanTheInitialState) {
  const OnlineChain chain = chain_after(50, 1);
  EXPECT_EQ(states_of(chain), States{0});
  EXPECT_EQ(steps_of(chain.finish()), revolve_steps(50, 1));
}

TEST(OnlineChain, ThatHasNotBegunOnlyDiscardsItsInitialState) {
  EXPECT_EQ(OnlineChain(4).finish(), (ChainSteps{{Kind::discard, 0}}));
  EXPECT_EQ(OnlineChain(4).reached(), 0);
}

// What reverse_from costs, by revolve_steps.
std::int64_t cost_of(std::span<const std::int32_t> states, std::int32_t layers, std::int32_t slots) {
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const std::int32_t end = i + 1 < states.size() ? states[i + 1] : layers;
    steps += revolve_steps(end - states[i], slots - static_cast<std::int64_t>(i));
  }
  return steps;
}

TEST(OnlineChain, GoesOnForMillionsOfLayers) {
  for (const std::int32_t slots : {3, 8, 20}) {
    OnlineChain chain(slots);
    while (chain.reached() < 2'000'000) {
      (void)chain.advance();
      if (chain.reached() % 10'007 != 0) continue;
      const std::int64_t backward = cost_of(chain.remembered(), chain.reached(), slots);
      ASSERT_LT(ratio(chain.reached(), backward, revolve_steps(chain.reached(), slots)), 1.05) << slots << " slots";
    }
  }
}

TEST(OnlineChain, OfLessThanOneSlotIsAnError) {
  EXPECT_THROW(OnlineChain(0), BadOption);
  EXPECT_THROW(OnlineChain(-7), BadOption);
}

// ---- reverse_from ---------------------------------------------------------------------------------------------------

// The states that the first sweep of a schedule remembers.
States first_sweep(const ChainSteps& steps) {
  States states;
  for (const ChainStep& step : steps) {
    if (step.kind == Kind::tape) break;
    if (step.kind == Kind::store) states.push_back(step.at);
  }
  return states;
}

// What revolve does before it has remembered the last of these states, and what reverse_from does then, are together
// what revolve does.
TEST(ReverseFrom, CostsWhatRevolveCostsFromTheStatesThatRevolveRemembers) {
  for (const std::int32_t layers : {2, 3, 5, 8, 13, 40, 99, 100, 300, 1000}) {
    for (std::int32_t slots = 1; slots <= std::min(layers + 1, 60); ++slots) {
      const States states = first_sweep(revolve_schedule(layers, slots));
      const ChainSteps steps = reverse_from(states, layers, slots);
      ASSERT_EQ(states.back() + steps_of(steps), revolve_steps(layers, slots)) << layers << ", " << slots;
      ASSERT_EQ(Machine(states, layers, slots).run(steps), "") << layers << ", " << slots;
    }
  }
}

// Every order of advancing, storing, loading and taping there is, those with fewer steps first. A state that was
// remembered at the start may be discarded when the layers after it are reversed.
std::int64_t fewest_steps(unsigned remembered, int layers, int slots) {
  struct Node {
    int steps, left, current;  // layers left, state at hand or -1
    unsigned stored;
  };
  std::deque<Node> queue = {{0, layers, -1, remembered}};
  std::vector<char> seen(static_cast<std::size_t>((layers + 1) * (layers + 2)) << (layers + 1));
  while (!queue.empty()) {
    const auto [steps, left, current, stored] = queue.front();
    queue.pop_front();
    const auto place = static_cast<std::size_t>(left * (layers + 2) + current + 1) << (layers + 1) | stored;
    if (std::exchange(seen[place], 1)) continue;
    if (left == 0) return steps;
    if (current >= 0) {
      if (current + 1 < left) queue.push_back({steps + 1, left, current + 1, stored});
      if (current + 1 == left) queue.push_back({steps + 1, left - 1, -1, stored});
      const unsigned more = stored | 1U << current;
      if (__builtin_popcount(more) <= slots) queue.push_front({steps, left, current, more});
    }
    for (int k = 0; k <= layers; ++k) {
      if (!(stored >> k & 1)) continue;
      if (k < left) queue.push_front({steps, left, k, stored});
      if (k >= left || !(remembered >> k & 1)) queue.push_front({steps, left, current, stored & ~(1U << k)});
    }
  }
  return -1;
}

TEST(ReverseFrom, NoOrderOfStepsIsBetterForAnyRememberedStatesOfUpToSevenLayers) {
  for (std::int32_t layers = 1; layers <= 7; ++layers) {
    for (unsigned remembered = 1; remembered < 2U << layers; remembered += 2) {
      States states;
      for (std::int32_t k = 0; k <= layers; ++k) {
        if (remembered >> k & 1) states.push_back(k);
      }
      for (auto slots = static_cast<std::int32_t>(states.size()); slots <= layers + 1; ++slots) {
        const ChainSteps steps = reverse_from(states, layers, slots);
        ASSERT_EQ(Machine(states, layers, slots).run(steps), "") << layers << ", " << slots << ", " << remembered;
        ASSERT_EQ(steps_of(steps), fewest_steps(remembered, layers, slots))
            << layers << ", " << slots << ", " << remembered;
      }
    }
  }
}

TEST(ReverseFrom, AnyRememberedStatesGiveStepsThatCanBeExecuted) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto layers = static_cast<std::int32_t>(random() % 200);
    const auto share = random() % 100;
    States states = {0};
    for (std::int32_t k = 1; k <= layers; ++k) {
      if (random() % 100 < share) states.push_back(k);
    }
    const auto slots = static_cast<std::int32_t>(states.size() + random() % 5);
    const ChainSteps steps = reverse_from(states, layers, slots);
    ASSERT_EQ(Machine(states, layers, slots).run(steps), "") << "round " << round;
    ASSERT_EQ(steps_of(steps), cost_of(states, layers, slots)) << "round " << round;
  }
}

TEST(ReverseFrom, TakesAMillionLayersWithAnyNumberOfRememberedStates) {
  constexpr std::int32_t layers = 1'000'000;
  for (const std::int32_t every : {1, 3}) {
    States states;
    for (std::int32_t k = 0; k < layers; k += every) states.push_back(k);
    const auto slots = static_cast<std::int32_t>(states.size()) + 20;
    const ChainSteps steps = reverse_from(states, layers, slots);
    EXPECT_EQ(steps_of(steps), cost_of(states, layers, slots)) << "every " << every;
  }
}

TEST(ReverseFrom, HasTheStepsOneWouldWrite) {
  EXPECT_EQ(reverse_from(States{0}, 0, 1), (ChainSteps{{Kind::discard, 0}}));
  EXPECT_EQ(reverse_from(States{0}, 1, 9),
            (ChainSteps{{Kind::load, 0}, {Kind::tape, 1}, {Kind::backward, 1}, {Kind::discard, 0}}));
  EXPECT_EQ(reverse_from(States{0, 2, 3}, 3, 3), (ChainSteps{{Kind::discard, 3},
                                                             {Kind::load, 2},
                                                             {Kind::tape, 3},
                                                             {Kind::backward, 3},
                                                             {Kind::discard, 2},
                                                             {Kind::load, 0},
                                                             {Kind::advance, 1},
                                                             {Kind::tape, 2},
                                                             {Kind::backward, 2},
                                                             {Kind::load, 0},
                                                             {Kind::tape, 1},
                                                             {Kind::backward, 1},
                                                             {Kind::discard, 0}}));
}

std::string complaint(const States& remembered, std::int32_t layers, std::int32_t slots) {
  try {
    (void)reverse_from(remembered, layers, slots);
  } catch (const BadOption& error) {
    return error.what();
  }
  return "";
}

TEST(ReverseFrom, NonsenseIsAnErrorThatNamesTheValues) {
  EXPECT_EQ(complaint({0}, -1, 1), "layers is -1: it cannot be negative");
  EXPECT_EQ(complaint({}, 3, 1), "remembered is empty: state 0 has to be among the remembered states");
  EXPECT_EQ(complaint({1, 2}, 3, 2), "remembered starts with state 1: it has to start with 0");
  EXPECT_EQ(complaint({0, 2, 2}, 3, 3), "remembered has state 2 before state 2: they have to be ascending");
  EXPECT_EQ(complaint({0, 4}, 3, 2), "remembered ends with state 4: there are only 3 layers");
  EXPECT_EQ(complaint({0, 1, 2}, 3, 2), "slots is 2: 3 states are remembered");
  EXPECT_EQ(complaint({0}, 3, -1), "slots is -1: 1 states are remembered");
  EXPECT_EQ(complaint({0, 3}, 3, 2), "");
}

}  // namespace
}  // namespace reprise
