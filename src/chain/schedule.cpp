#include "reprise/chain/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "chain/step_writer.h"
#include "reprise/plan/hrevolve.h"
#include "reprise/plan/online_chain.h"
#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;

Plan plan_of_steps(const ChainForm& form, const ChainSteps& steps, Bytes budget) {
  StepWriter writer(form.tapes, form.packed, form.disk);
  writer.layers(form.size());
  writer.write(steps);
  return {budget, form.tiers, writer.take_actions()};
}

namespace schedule {
namespace {

void require_positive(const char* what, int number) {
  if (number < 1) throw BadOption(fmt::format("[chain] {} is {}: it has to be at least 1", what, number));
}

// ---- steps by simple rules ----

class Everything : public Schedule {
 public:
  Plan plan(const ChainForm& form) const override {
    ChainSteps steps;
    for (Id k = 1; k <= form.size(); ++k) {
      steps.push_back({ChainStep::Kind::store, k - 1});
      steps.push_back({ChainStep::Kind::tape, k});
    }
    for (Id k = form.size(); k > 0; --k) {
      steps.push_back({ChainStep::Kind::load, k - 1});
      steps.push_back({ChainStep::Kind::backward, k});
      steps.push_back({ChainStep::Kind::discard, k - 1});
    }
    return plan_of_steps(form, steps);
  }
};

class Every : public Schedule {
 public:
  Every(int n, std::optional<int> maximum) : n_(n), maximum_(maximum) {
    require_positive("every", n);
    if (maximum) require_positive("maximum", *maximum);
  }

  Plan plan(const ChainForm& form) const override {
    const Id layers = form.size();
    Id apart = n_;
    if (maximum_) apart = std::max<Id>(apart, layers / *maximum_ + (layers % *maximum_ != 0));
    ChainSteps steps;
    for (Id k = 0; k < layers; ++k) {
      if (k % apart == 0) steps.push_back({ChainStep::Kind::store, k});
      steps.push_back({ChainStep::Kind::advance, k + 1});
    }
    Id end = layers;
    while (end > 0) {
      const Id first = (end - 1) / apart * apart;
      reverse(first, end, steps);
      end = first;
    }
    return plan_of_steps(form, steps);
  }

 private:
  // Forward once more with all states remembered, then backward.
  static void reverse(Id first, Id end, ChainSteps& steps) {
    steps.push_back({ChainStep::Kind::load, first});
    for (Id k = first + 1; k <= end; ++k) {
      steps.push_back({ChainStep::Kind::tape, k});
      if (k < end) steps.push_back({ChainStep::Kind::store, k});
    }
    for (Id k = end; k > first; --k) {
      if (k < end) steps.push_back({ChainStep::Kind::load, k - 1});
      steps.push_back({ChainStep::Kind::backward, k});
      steps.push_back({ChainStep::Kind::discard, k - 1});
    }
  }

  const Id n_;
  const std::optional<int> maximum_;
};

// ---- Revolve and its relatives ----

class Slots : public Schedule {
 public:
  explicit Slots(int slots) : slots_(slots) { require_positive("slots", slots); }
  Plan plan(const ChainForm& form) const override { return plan_of_steps(form, revolve_schedule(form.size(), slots_)); }

 private:
  const int slots_;
};

class MemoryAndDisk : public Schedule {
 public:
  explicit MemoryAndDisk(const TwoLevels& levels) : levels_(levels) {
    (void)hrevolve_cost(problem(1));  // says at once what is wrong with the numbers
    if (levels.memory_slots + levels.disk_slots < 1) {
      throw BadOption("[chain] memory_slots and disk_slots are both 0: a chain needs at least one");
    }
  }
  Plan plan(const ChainForm& form) const override {
    return plan_of_steps(form, hrevolve_schedule(problem(form.size())));
  }
  bool needs_disk() const override { return levels_.disk_slots > 0; }

 private:
  [[nodiscard]] HRevolveProblem problem(Id layers) const {
    return {layers,
            {{levels_.memory_slots, 0, 0}, {levels_.disk_slots, levels_.write_cost, levels_.read_cost}},
            levels_.forward_cost,
            levels_.backward_cost};
  }
  const TwoLevels levels_;
};

class Online : public Schedule {
 public:
  explicit Online(int slots) : slots_(slots) { require_positive("slots", slots); }
  Plan plan(const ChainForm& form) const override { return plan_of_steps(form, revolve_schedule(form.size(), slots_)); }
  std::unique_ptr<ChainDecisions> decisions() const override {
    class Decisions : public ChainDecisions {
     public:
      explicit Decisions(int slots) : chain_(slots) {}
      Decision reached(double) override {
        const auto [store, discard] = chain_.advance();
        return {store, discard};
      }
      ChainSteps backward_steps() override { return chain_.finish(); }

     private:
      OnlineChain chain_;
    };
    return std::make_unique<Decisions>(slots_);
  }

 private:
  const int slots_;
};

class Selective : public Schedule {
 public:
  explicit Selective(double threshold) : threshold_(threshold) {
    if (!(threshold >= 0)) throw BadOption(fmt::format("[chain] threshold is {}: it cannot be negative", threshold));
  }
  Plan plan(const ChainForm& form) const override {
    Decisions decisions(threshold_);
    ChainSteps steps{{ChainStep::Kind::store, 0}};
    for (Id k = 1; k <= form.size(); ++k) {
      steps.push_back({ChainStep::Kind::advance, k});
      const bool remember = decisions.reached(form.layers[k - 1].forward_cost).remember;
      if (remember && k < form.size()) steps.push_back({ChainStep::Kind::store, k});
    }
    const ChainSteps backward = decisions.backward_steps();
    steps.insert(steps.end(), backward.begin(), backward.end());
    return plan_of_steps(form, steps);
  }
  std::unique_ptr<ChainDecisions> decisions() const override { return std::make_unique<Decisions>(threshold_); }

 private:
  class Decisions : public ChainDecisions {
   public:
    explicit Decisions(double threshold) : threshold_(threshold) {}
    Decision reached(double cost) override {
      ++reached_;
      since_ += cost;
      if (since_ < threshold_) return {};
      since_ = 0;
      remembered_.push_back(reached_);
      return {true, std::nullopt};
    }
    ChainSteps backward_steps() override {
      // The last state is needed by nobody. Backward remembers all states between two remembered ones.
      if (remembered_.back() == reached_ && reached_ > 0) remembered_.pop_back();
      return reverse_from(remembered_, reached_, reached_ + 1);
    }

   private:
    const double threshold_;
    double since_ = 0;
    Id reached_ = 0;
    std::vector<Id> remembered_{0};
  };
  const double threshold_;
};

// ---- bytes ----

class Budget : public Schedule {
 public:
  Budget(Bytes bytes, std::chrono::duration<double> time_limit) : bytes_(bytes), time_limit_(time_limit) {
    if (bytes < 0) throw BadOption(fmt::format("[chain] budget is {}: it cannot be negative", bytes));
  }
  Plan plan(const ChainForm& form) const override { return plan_chain_within(form, bytes_, time_limit_).plan; }
  bool needs_sizes() const override { return true; }

 private:
  const Bytes bytes_;
  const std::chrono::duration<double> time_limit_;
};

}  // namespace

SchedulePointer everything() {
  return std::make_shared<Everything>();
}
SchedulePointer every(int n, std::optional<int> maximum) {
  return std::make_shared<Every>(n, maximum);
}
SchedulePointer slots(int slots) {
  return std::make_shared<Slots>(slots);
}
SchedulePointer memory_and_disk(const TwoLevels& levels) {
  return std::make_shared<MemoryAndDisk>(levels);
}
SchedulePointer budget(Bytes bytes, std::chrono::duration<double> time_limit) {
  return std::make_shared<Budget>(bytes, time_limit);
}
SchedulePointer online(int slots) {
  return std::make_shared<Online>(slots);
}
SchedulePointer selective(double threshold) {
  return std::make_shared<Selective>(threshold);
}

}  // namespace schedule
}  // namespace reprise
