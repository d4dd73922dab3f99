// The journal of a pass: measures it while it runs. A pass that was never seen is *observed*: everything that its
// profile has is written down. Of one that is followed the journal only improves what the profile of that pass has.
//
// Under the arbiter's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "torch/memory/meter.h"
#include "torch/recipes/device_timing.h"
#include "torch/recipes/pass_profile.h"

namespace reprise::internal {

class Journal {
 public:
  // Measures what happens at the device of this meter.
  explicit Journal(Meter& meter = meter::cpu()) : meter_(meter) {}

  // ---- what is measured ----
  // Writes everything down, from the first moment on.
  void observe();
  // Goes on with the profile of a pass, which is followed or was made of this journal, and outlives this or is left.
  void follow(PassProfile& known) { known_ = &known; }
  // Measures the costs of a pass that is followed, into its profile, and the other bytes of this step.
  void measure(bool costs, bool other);
  // Takes costs from this device, which knows them later.
  void measure_late(c10::Device device) { late_ = std::make_shared<LateCosts>(device); }
  // Ends observing: the trace of this pass is not to be planned.
  void mark_unplannable();
  // Leaves the pass that was followed, with the costs of as many operators.
  void leave(std::size_t operators);
  // Observes from now on, and takes what was not observed here from the profile of the pass that was left.
  // `has_to_be_watched` is called for each value whose release has not been seen there.
  template <class HasToBeWatched>
  void take_over(const PassProfile& left, std::size_t values_in_common, std::size_t values,
                 HasToBeWatched&& has_to_be_watched);

  [[nodiscard]] bool observing() const { return observing_; }
  [[nodiscard]] bool measuring() const { return measuring_; }
  [[nodiscard]] bool measuring_other() const { return measuring_other_; }
  [[nodiscard]] bool plannable() const { return plannable_; }
  // Null if the host measures, or nothing does. What is in it, not under the lock.
  [[nodiscard]] LateCosts* late() const { return late_.get(); }

  // ---- moments ----
  [[nodiscard]] Id moment() const { return moment_; }  // the one to come
  // Begins a moment. What happened since the last one belongs to it. `held` returns whether the program still holds a
  // value, of `values`.
  template <class Held>
  void begin_operator(Id op, std::size_t values, Held&& held);
  template <class Held>
  void begin_event(const char* name, std::uint64_t hash, std::size_t values, Held&& held);
  // Ends the bytes of a moment: what an operator made is a value afterwards.
  void end_moment();
  void end_operator();
  // True while a node of backward runs that began a moment: an operator in it begins a moment of its own.
  [[nodiscard]] bool in_event() const { return in_event_; }
  void end_event(float cost);
  // Notes that events of backward pass by unseen: moments are not counted any more.
  void lose_count() { lost_count_ = true; }
  [[nodiscard]] bool lost_count() const { return lost_count_; }

  // ---- values ----
  void made(Id value);    // by an operator; it can be recomputed
  void needed(Id value);  // by the event that runs
  // Notes how the value packs.
  void packs(Id value, const std::optional<PackedForm>&);

  // ---- costs ----
  [[nodiscard]] float cost_of(Id op) const { return profile().cost_of(op); }
  // Notes what an operator took; if it was measured before, the least counts.
  void set_cost(Id op, float microseconds, bool again);
  void resize_costs(std::size_t operators) { own_.costs.resize(operators); }
  // The cost of the pass so far; in backward, where the value asked for last was saved.
  [[nodiscard]] float now() const { return now_; }
  void advance(float cost) { now_ += cost; }
  void go_to(float time) { now_ = time; }
  // Microseconds of the event that runs which went into recomputing values.
  [[nodiscard]] double recomputing() const { return recomputing_; }
  void add_recomputing(double microseconds) { recomputing_ += microseconds; }

  // ---- the outcome ----
  // Returns what is known of the pass: the profile that is followed, or the one that is written.
  [[nodiscard]] const PassProfile& profile() const { return known_ ? *known_ : own_; }
  // By moment, if measured: of this step alone.
  [[nodiscard]] const std::vector<OtherBytes>& other() const { return own_.other; }
  [[nodiscard]] PassProfile take_profile() { return std::move(own_); }
  // Closes and returns them. Other threads may still be in backward, and find them closed.
  [[nodiscard]] std::shared_ptr<LateCosts> close_late_costs();

 private:
  void begin(ProfiledMoment);
  template <class Held>
  void see_releases(std::size_t values, Held&& held);

  Meter& meter_;
  bool observing_ = false, measuring_ = false, measuring_other_ = false;
  bool plannable_ = true;
  bool lost_count_ = false;
  Id moment_ = 0;
  bool after_event_ = false;  // the last moment that began was one
  bool in_event_ = false;     // and has not ended
  Id event_ = 0;              // the moment of the last one
  PassProfile own_;           // what is measured here and not in `known_`
  PassProfile* known_ = nullptr;
  std::vector<Id> watched_;  // values that the program may still hold
  std::shared_ptr<LateCosts> late_;
  float now_ = 0;
  double recomputing_ = 0;
};

// ---- how ------------------------------------------------------------------------------------------------------------

template <class HasToBeWatched>
void Journal::take_over(const PassProfile& left, std::size_t values_in_common, std::size_t values,
                        HasToBeWatched&& has_to_be_watched) {
  PassProfile before = left.before(moment_);
  before.costs = std::move(own_.costs);
  std::copy(own_.other.begin(), own_.other.end(), before.other.begin());
  if (before.released.size() > values_in_common) before.released.resize(values_in_common);
  if (before.forms.size() > values_in_common) before.forms.resize(values_in_common);
  for (Id v = 0; v < static_cast<Id>(before.released.size()); ++v) {
    if (before.released[v] < 0 && has_to_be_watched(v)) watched_.push_back(v);
  }
  before.released.resize(values, -1);
  own_ = std::move(before);
  observing_ = measuring_ = measuring_other_ = true;
}

template <class Held>
void Journal::begin_operator(Id op, std::size_t values, Held&& held) {
  begin({.op = op});
  if (!observing_) return;
  own_.moment_of.resize(static_cast<std::size_t>(op) + 1, -1);
  own_.moment_of[op] = moment_ - 1;
  see_releases(values, held);
}

template <class Held>
void Journal::begin_event(const char* name, std::uint64_t hash, std::size_t values, Held&& held) {
  recomputing_ = 0;
  begin({.name = hash});
  if (!observing_) return;
  own_.add_event(name, hash);
  see_releases(values, held);
}

template <class Held>
void Journal::see_releases(std::size_t values, Held&& held) {
  own_.released.resize(values, -1);
  for (std::size_t i = 0; i < watched_.size();) {
    const Id value = watched_[i];
    if (held(value)) {
      ++i;
      continue;
    }
    own_.released[value] = moment_ - 2;
    watched_[i] = watched_.back();
    watched_.pop_back();
  }
}

}  // namespace reprise::internal
