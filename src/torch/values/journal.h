// The journal of a pass: its moments, what they cost, and the other bytes; the source of its trace.
//
// A pass that nobody has seen is *observed*: everything a trace needs is written down. One that is followed is only
// measured. Under the arbiter's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "torch/memory/meter.h"
#include "torch/plans/recorded_pass.h"
#include "torch/recipes/device_timing.h"
#include "torch/recipes/observations.h"

namespace reprise::internal {

class Journal {
 public:
  // Of what happens at the device of this meter.
  explicit Journal(Meter& meter = meter::cpu()) : meter_(meter) {}

  // ---- what is written down ----
  // Everything, from the first moment.
  void observe();
  // The costs of operators, starting from these, and the other bytes; or not.
  void measure(std::vector<float> costs, bool measure_costs, bool measure_other);
  // Costs are those that this device will tell.
  void measure_late(c10::Device device) { late_ = std::make_shared<LateCosts>(device); }
  // Its trace will not be planned, for this reason.
  void give_up(const char* why);
  // The pass it followed has been left: what was not observed here was observed there, up to now. Nothing if that
  // cannot be: moments of backward were not counted. `watched` is called for each value of theirs whose release has not
  // been seen, and says whether to look out for it.
  template <class Watched>
  void take_over(const RecordedPass& left, std::size_t values_in_common, std::size_t values, Watched&& watched);

  [[nodiscard]] bool observing() const { return observing_; }
  [[nodiscard]] bool measuring() const { return measuring_; }
  // nullptr: the host measures, or nobody does. What is in it, not under the lock.
  [[nodiscard]] LateCosts* late() const { return late_.get(); }
  [[nodiscard]] bool measuring_other() const { return measuring_other_; }
  [[nodiscard]] bool plannable() const { return !unplannable_; }

  // ---- moments ----
  [[nodiscard]] Id moment() const { return moment_; }  // the one to come
  // Begins a moment. What happened since the last one belongs to it. `held` says whether the program still holds a
  // value, of `values`.
  template <class Held>
  void begin_operator(Id op, std::size_t values, Held&& held);
  template <class Held>
  void begin_event(const char* name, std::uint64_t hash, std::size_t values, Held&& held);
  void end_moment(float cost);
  // A node of backward has begun, and neither it nor its moment has ended: an operator in it begins a moment of its
  // own.
  [[nodiscard]] bool in_event() const { return in_event_; }
  void end_event(float cost);
  // What an operator made is a value now, not one of the other bytes.
  void end_operator();

  void made(Id value);    // by an operator; it can be recomputed
  void needed(Id value);  // by the event that runs
  // How the value packs; it was observed only now.
  void packs(Id value, const std::optional<PackedForm>&);
  [[nodiscard]] bool knows_form_of(Id value) const;

  // Events of backward pass by unseen: moments are not counted.
  void lose_count() { lost_count_ = true; }
  [[nodiscard]] bool lost_count() const { return lost_count_; }

  // ---- costs ----
  [[nodiscard]] float cost_of(Id op) const { return static_cast<std::size_t>(op) < costs_.size() ? costs_[op] : 0; }
  // Measured now: of an operator that was measured before, the least counts.
  void cost(Id op, float microseconds, bool again);
  void costs_of(std::vector<float> costs) { costs_ = std::move(costs); }
  void operators(std::size_t count) { costs_.resize(count); }
  // The cost of the pass so far; in backward, where the value asked for last was saved.
  [[nodiscard]] float now() const { return now_; }
  void advance(float cost) { now_ += cost; }
  void go_to(float time) { now_ = time; }

  // Microseconds of the event that runs which went into recomputing values.
  [[nodiscard]] double recomputing() const { return recomputing_; }
  void recomputed_for(double microseconds) { recomputing_ += microseconds; }

  // ---- the outcome ----
  [[nodiscard]] const Observations& seen() const { return seen_; }
  [[nodiscard]] const std::vector<float>& costs() const { return costs_; }
  [[nodiscard]] const std::vector<OtherBytes>& other() const { return other_; }
  [[nodiscard]] Observations take_observations();
  // Closes and returns them. Other threads may still be in backward, and find them closed.
  [[nodiscard]] std::shared_ptr<LateCosts> close_late_costs();

 private:
  void begin(ObservedMoment);
  template <class Held>
  void see_releases(std::size_t values, Held&& held);
  void take_over_other_bytes(const RecordedPass& left);

  Meter& meter_;
  bool observing_ = false, measuring_ = false, measuring_other_ = false;
  const char* unplannable_ = nullptr;
  bool lost_count_ = false;
  Id moment_ = 0;
  bool after_event_ = false;  // the last moment that began was one
  bool in_event_ = false;     // and has not ended
  Id event_ = 0;              // the moment of the last one
  Observations seen_;
  std::shared_ptr<LateCosts> late_;
  std::vector<float> costs_;       // by operator, CPU microseconds
  std::vector<OtherBytes> other_;  // by moment, if measured
  float now_ = 0;
  double recomputing_ = 0;
};

// ---- how ------------------------------------------------------------------------------------------------------------

template <class Watched>
void Journal::take_over(const RecordedPass& left, std::size_t values_in_common, std::size_t values, Watched&& watched) {
  seen_ = left.seen.before(moment_);
  if (seen_.released.size() > values_in_common) seen_.released.resize(values_in_common);
  if (seen_.forms.size() > values_in_common) seen_.forms.resize(values_in_common);
  for (Id v = 0; v < static_cast<Id>(seen_.released.size()); ++v) {
    if (seen_.released[v] < 0 && watched(v)) seen_.watched.push_back(v);
  }
  seen_.released.resize(values, -1);
  take_over_other_bytes(left);
  observing_ = measuring_ = measuring_other_ = true;
}

template <class Held>
void Journal::begin_operator(Id op, std::size_t values, Held&& held) {
  begin({.op = op});
  if (!observing_) return;
  seen_.moment_of.resize(static_cast<std::size_t>(op) + 1, -1);
  seen_.moment_of[op] = moment_ - 1;
  see_releases(values, held);
}

template <class Held>
void Journal::begin_event(const char* name, std::uint64_t hash, std::size_t values, Held&& held) {
  recomputing_ = 0;
  begin({.name = hash});
  if (!observing_) return;
  seen_.add_event(name, hash);
  see_releases(values, held);
}

template <class Held>
void Journal::see_releases(std::size_t values, Held&& held) {
  seen_.released.resize(values, -1);
  auto& watched = seen_.watched;
  for (std::size_t i = 0; i < watched.size();) {
    const Id value = watched[i];
    if (held(value)) {
      ++i;
      continue;
    }
    seen_.released[value] = moment_ - 2;
    watched[i] = watched.back();
    watched.pop_back();
  }
}

}  // namespace reprise::internal
