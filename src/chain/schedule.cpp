#include "reprise/chain/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "chain/step_writer.h"
#include "plan/chains/online_chain.h"
#include "reprise/plan/hrevolve.h"
#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"
#include "store/comma_list.h"

namespace reprise {
using namespace internal;

Plan plan_of_steps(const ChainForm& form, const ChainSteps& steps, Bytes budget) {
  StepWriter writer(form.tapes, {form.packed, form.disk}, false);
  writer.set_layers(form.size());
  writer.write(steps, steps.size());
  return {budget, form.tiers, writer.take_actions()};
}

namespace {

class ListedSteps final : public ChainStepSource {
 public:
  explicit ListedSteps(ChainSteps steps) : steps_(std::move(steps)) {}
  std::optional<ChainStep> next() override { return at_ < steps_.size() ? std::optional(steps_[at_++]) : std::nullopt; }

 private:
  const ChainSteps steps_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ChainStepSource> ChainDecisions::backward_source() {
  return std::make_unique<ListedSteps>(backward_steps());
}

namespace schedule {
namespace {

void require_positive(const char* what, int number) {
  if (number < 1) throw BadOption(fmt::format("[chain] {} is {}: it has to be at least 1", what, number));
}

// Schedules whose steps follow from the number of layers alone.
class StepSchedule : public Schedule {
 public:
  Plan plan(const ChainForm& form) const override { return plan_of_steps(form, all_steps(*steps(form.size()))); }
};

// ---- steps by simple rules ----

// Remembers the state before each segment of `apart` layers, and all states of the last segment.
class SegmentSource final : public ChainStepSource {
 public:
  SegmentSource(Id layers, Id apart)
      : layers_(layers), apart_(apart), first_((layers - 1) / apart * apart), end_(layers), going_on_(layers > 0) {}

  std::optional<ChainStep> next() override {
    ChainStep step;
    return fill({&step, 1}) > 0 ? std::optional(step) : std::nullopt;
  }
  std::size_t fill(std::span<ChainStep> room) override {
    ChainStep* to = room.data();
    ChainStep* const end = to + room.size();
    while (to < end && end_ > 0) to = going_on_ ? (in_segment_ ? tape(to, end) : advance(to, end)) : reverse(to, end);
    return static_cast<std::size_t>(to - room.data());
  }

 private:
  using Kind = ChainStep::Kind;

  // Each of these writes steps of its kind, as many as there are and have room.

  // Goes to the last segment and stores the state before each one. In a replay, goes to the state before the segment.
  ChainStep* advance(ChainStep* to, ChainStep* end) {
    const bool replay = end_ < layers_;
    for (; to < end && at_ < first_; ++to) {
      if (at_ == next_stored_) {
        *to = {Kind::store, at_};
        next_stored_ += apart_;
      } else {
        *to = {Kind::advance, ++at_};
      }
    }
    if (to == end) return to;
    in_segment_ = true;
    stored_ = replay;  // the state before the segment is
    if (replay) *to++ = {Kind::load, first_};
    return to;
  }

  // Goes through the segment and stores every state until backward has used it.
  ChainStep* tape(ChainStep* to, ChainStep* end) {
    for (; to < end && at_ < end_; ++to, stored_ = !stored_) {
      *to = stored_ ? ChainStep{Kind::tape, ++at_} : ChainStep{Kind::store, at_};
    }
    if (at_ == end_) going_on_ = false;
    return to;
  }

  // Reverses layer at_: load the state before it, unless it was just replayed for that, run it, discard the state.
  ChainStep* reverse(ChainStep* to, ChainStep* end) {
    if (part_ == 0 && at_ == end_ && end_ < layers_) part_ = 1;
    while (to < end) {
      switch (part_++) {
        case 0: *to++ = {Kind::load, at_ - 1}; continue;
        case 1: *to++ = {Kind::backward, at_}; continue;
        default: break;
      }
      part_ = 0;
      *to++ = {Kind::discard, --at_};
      if (at_ == first_) break;
    }
    if (part_ == 0 && at_ == first_) {
      end_ = first_;
      at_ = first_ = std::max(0, first_ - apart_);
      going_on_ = true;
      in_segment_ = false;
    }
    return to;
  }

  const Id layers_, apart_;
  Id first_, end_;                // states: of the segment that is or will be reversed next
  Id at_ = 0;                     // the state that was reached; in backward, the layer that is next, counted from 1
  std::int64_t next_stored_ = 0;  // before the last segment: the state that will be stored next
  bool going_on_;                 // forward, for the first time or again
  bool in_segment_ = false;       // forward goes through the segment that is reversed next
  bool stored_ = false;           // in the segment: the state that was reached
  int part_ = 0;                  // of the backward of a layer
};

class Everything : public StepSchedule {
 public:
  std::string text() const override { return "everything()"; }
  std::unique_ptr<ChainStepSource> steps(Id layers) const override {
    return std::make_unique<SegmentSource>(layers, std::max(layers, 1));
  }
};

class Every : public StepSchedule {
 public:
  Every(int n, std::optional<int> maximum) : n_(n), maximum_(maximum) {
    require_positive("every", n);
    if (maximum) require_positive("maximum", *maximum);
  }
  std::string text() const override {
    return fmt::format("every({}, {})", n_, maximum_ ? std::to_string(*maximum_) : "std::nullopt");
  }
  std::unique_ptr<ChainStepSource> steps(Id layers) const override {
    Id apart = n_;
    if (maximum_) apart = std::max<Id>(apart, layers / *maximum_ + (layers % *maximum_ != 0));
    return std::make_unique<SegmentSource>(layers, apart);
  }

 private:
  const Id n_;
  const std::optional<int> maximum_;
};

// ---- Revolve and its relatives ----

class Slots : public StepSchedule {
 public:
  explicit Slots(int slots) : slots_(slots) { require_positive("slots", slots); }
  std::string text() const override { return fmt::format("slots({})", slots_); }
  std::unique_ptr<ChainStepSource> steps(Id layers) const override { return revolve_source(layers, slots_); }

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
  std::string text() const override {
    return fmt::format(
        "memory_and_disk({{.memory_slots = {}, .disk_slots = {}, .write_cost = {:g}, .read_cost = {:g}, "
        ".forward_cost = {:g}, .backward_cost = {:g}}})",
        levels_.memory_slots, levels_.disk_slots, levels_.write_cost, levels_.read_cost, levels_.forward_cost,
        levels_.backward_cost);
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
  std::string text() const override { return fmt::format("online({})", slots_); }
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
      std::unique_ptr<ChainStepSource> backward_source() override { return chain_.finish_source(); }

     private:
      OnlineChain chain_;
    };
    return std::make_unique<Decisions>(slots_);
  }

 private:
  const int slots_;
};

// Remembers by cost: of the layers since the last remembered state, or of the layer alone.
class Selective : public Schedule {
 public:
  Selective(double threshold, bool adds_up) : threshold_(threshold), adds_up_(adds_up) {
    if (!(threshold >= 0)) throw BadOption(fmt::format("[chain] threshold is {}: it cannot be negative", threshold));
  }
  std::string text() const override {
    return fmt::format("{}({:g})", adds_up_ ? "selective" : "costly_layers", threshold_);
  }
  Plan plan(const ChainForm& form) const override {
    Decisions decisions(threshold_, adds_up_);
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
  std::unique_ptr<ChainDecisions> decisions() const override {
    return std::make_unique<Decisions>(threshold_, adds_up_);
  }

 private:
  class Decisions : public ChainDecisions {
   public:
    Decisions(double threshold, bool adds_up) : threshold_(threshold), adds_up_(adds_up) {}
    Decision reached(double cost) override {
      ++reached_;
      since_ = adds_up_ ? since_ + cost : cost;
      if (since_ < threshold_) return {};
      since_ = 0;
      remembered_.push_back(reached_);
      return {true, std::nullopt};
    }
    ChainSteps backward_steps() override { return all_steps(*backward_source()); }
    std::unique_ptr<ChainStepSource> backward_source() override {
      // Backward does not need the last state. Backward remembers all states between two remembered ones.
      if (remembered_.back() == reached_ && reached_ > 0) remembered_.pop_back();
      return reverse_source(remembered_, reached_, reached_ + 1);
    }

   private:
    const double threshold_;
    const bool adds_up_;
    double since_ = 0;
    Id reached_ = 0;
    std::vector<Id> remembered_{0};
  };
  const double threshold_;
  const bool adds_up_;
};

class After : public Schedule {
 public:
  explicit After(std::vector<Id> positions) : positions_(std::move(positions)) {
    std::sort(positions_.begin(), positions_.end());
    positions_.erase(std::unique(positions_.begin(), positions_.end()), positions_.end());
    if (!positions_.empty() && positions_.front() < 0) {
      throw BadOption(fmt::format("[chain] after({}): a layer cannot be negative", positions_.front()));
    }
  }
  std::string text() const override { return fmt::format("after({{{}}})", comma_list(positions_)); }
  Plan plan(const ChainForm& form) const override {
    if (!form.part_from && !positions_.empty() && positions_.back() >= form.size()) {
      throw BadOption(
          fmt::format("[chain] after({}): there is no such layer, the chain has {}", positions_.back(), form.size()));
    }
    std::vector<Id> remembered{0};
    for (const Id position : positions_) {
      const Id state = position + 1 - form.part_from.value_or(0);
      if (state > 0 && state < form.size()) remembered.push_back(state);
    }
    ChainSteps steps;
    auto next = remembered.begin();
    for (Id k = 0; k < form.size(); ++k) {
      if (next != remembered.end() && *next == k) {
        steps.push_back({ChainStep::Kind::store, k});
        ++next;
      }
      steps.push_back({ChainStep::Kind::advance, k + 1});
    }
    if (form.size() > 0) {
      const ChainSteps backward = reverse_from(remembered, form.size(), form.size() + 1);
      steps.insert(steps.end(), backward.begin(), backward.end());
    }
    return plan_of_steps(form, steps);
  }

 private:
  std::vector<Id> positions_;
};

// ---- bytes ----

class Budget : public Schedule {
 public:
  Budget(Bytes bytes, std::chrono::duration<double> time_limit) : bytes_(bytes), time_limit_(time_limit) {
    if (bytes < 0) throw BadOption(fmt::format("[chain] budget is {}: it cannot be negative", bytes));
  }
  std::string text() const override { return fmt::format("budget({})", bytes_); }
  Plan plan(const ChainForm& form) const override { return watched_plan(form, {}); }
  Plan watched_plan(const ChainForm& form, const ChainPlanning& planning) const override {
    return plan_chain_within(form, bytes_, time_limit_, std::nullopt, planning).plan;
  }
  bool needs_sizes() const override { return true; }
  std::optional<Bytes> limit() const override { return bytes_; }

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
  return std::make_shared<Selective>(threshold, true);
}
SchedulePointer costly_layers(double threshold) {
  return std::make_shared<Selective>(threshold, false);
}
SchedulePointer after(std::vector<Id> positions) {
  return std::make_shared<After>(std::move(positions));
}

}  // namespace schedule
}  // namespace reprise
