// Schedules of random steps: right ones of every shape, and wrong ones.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <utility>

#include "reprise/chain/schedule.h"

namespace reprise::testing {

// Cuts the layers at random places, and remembers the state before each part at a random level. If `wrong`, some of its
// steps are not what they should be.
class RandomSteps final : public Schedule {
 public:
  RandomSteps(std::uint64_t seed, Id levels, bool wrong) : seed_(seed), levels_(levels), wrong_(wrong) {}

  [[nodiscard]] Plan plan(const ChainForm& form) const override { return plan_of_steps(form, some(form.size())); }
  [[nodiscard]] std::unique_ptr<ChainStepSource> steps(Id layers) const override {
    class Source final : public ChainStepSource {
     public:
      explicit Source(ChainSteps steps) : steps_(std::move(steps)) {}
      std::optional<ChainStep> next() override {
        return at_ < steps_.size() ? std::optional(steps_[at_++]) : std::nullopt;
      }

     private:
      const ChainSteps steps_;
      std::size_t at_ = 0;
    };
    return std::make_unique<Source>(some(layers));
  }
  [[nodiscard]] bool needs_disk() const override { return levels_ > 1; }
  [[nodiscard]] std::string text() const override { return wrong_ ? "wrong steps" : "random steps"; }

 private:
  using Kind = ChainStep::Kind;

  [[nodiscard]] ChainSteps some(Id layers) const {
    std::mt19937_64 random(seed_);
    ChainSteps steps;
    const std::function<void(Id, Id, bool, Id)> reverse = [&](Id first, Id count, bool stored, Id level) {
      if (count == 0) return;
      if (count == 1) {
        steps.push_back({Kind::tape, first + 1, 0});
        steps.push_back({Kind::backward, first + 1, 0});
        return;
      }
      const Id ahead = 1 + static_cast<Id>(random() % static_cast<std::uint64_t>(count - 1));
      if (!stored) level = static_cast<Id>(random() % static_cast<std::uint64_t>(levels_));
      if (!stored) steps.push_back({Kind::store, first, level});
      for (Id k = 1; k <= ahead; ++k) steps.push_back({Kind::advance, first + k, 0});
      reverse(first + ahead, count - ahead, false, 0);
      steps.push_back({Kind::load, first, level});
      reverse(first, ahead, true, level);
      if (!stored) steps.push_back({Kind::discard, first, level});
    };
    reverse(0, layers, false, 0);
    for (auto changes = wrong_ && !steps.empty() ? 1 + random() % 3 : 0; changes > 0; --changes) {
      const auto at = static_cast<std::ptrdiff_t>(random() % steps.size());
      ChainStep& step = steps[static_cast<std::size_t>(at)];
      const auto other = static_cast<Id>(random() % static_cast<std::uint64_t>(layers + 2));
      switch (random() % 6) {
        case 0: step.kind = static_cast<Kind>(random() % 6); break;
        case 1: step.at = other - 1; break;
        case 2: step.level = static_cast<Id>(random() % 4) - 1; break;
        case 3: std::swap(step, steps[random() % steps.size()]); break;
        case 4: steps.insert(steps.begin() + at, {static_cast<Kind>(random() % 6), other, 0}); break;
        default:
          steps.erase(steps.begin() + at);
          if (steps.empty()) return steps;
      }
    }
    return steps;
  }

  const std::uint64_t seed_;
  const Id levels_;
  const bool wrong_;
};

}  // namespace reprise::testing
