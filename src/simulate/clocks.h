// The clock of the computation and those of the tiers, by the rules of trace.h about time.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "reprise/trace/plan.h"

namespace reprise::internal {

class Clocks {
 public:
  struct Span {
    double begin = 0, end = 0;
  };

  Clocks(const Plan& plan, std::size_t values) {
    bool any = false;
    for (const Tier& tier : plan.tiers) {
      tiers_.push_back({tier.overlaps(), tier.duplex, tier.capacity.has_value(), 0, 0, {}});
      any |= tiers_.back().overlaps;
    }
    if (any) values_.resize(values);
  }

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] double waited() const { return waited_; }

  void compute(double cost) { now_ += cost; }
  // Records that the value becomes resident, not by a get.
  void arrive(Id value) {
    if (!values_.empty()) values_[value].ready_at = 0;
  }
  // Waits until the value was got: an operator needs it.
  void need(Id value) {
    if (!values_.empty()) wait_until(values_[value].ready_at);
  }
  // Waits for the transfers of a value whose memory is freed, taken over by another value, or held by the program,
  // which may write into it.
  void wait_for_transfers(Id value) {
    if (!values_.empty()) wait_until(values_[value].idle_from);
  }

  // Return the span of the tier; that of the computation if the tier does not overlap with it.
  Span put(Id value, Id t, const TierEntry& entry) {
    const Span own = spend(entry.put_cost);
    TierClock& tier = tiers_[t];
    if (!tier.overlaps) return own;
    double begin = std::max({now_, values_[value].ready_at, tier.puts_end});
    if (!tier.duplex || tier.limited) begin = std::max(begin, tier.gets_end);
    tier.puts_end = tier.copy_ready_at[value] = begin + entry.put_time;
    return occupy(value, {begin, tier.puts_end});
  }
  Span get(Id value, Id t, const TierEntry& entry) {
    const Span own = spend(entry.get_cost);
    TierClock& tier = tiers_[t];
    if (!tier.overlaps) return own;
    double begin = std::max({now_, tier.copy_ready_at[value], tier.gets_end});
    if (!tier.duplex) begin = std::max(begin, tier.puts_end);
    tier.gets_end = values_[value].ready_at = begin + entry.get_time;
    return occupy(value, {begin, tier.gets_end});
  }

 private:
  struct TierClock {
    bool overlaps, duplex, limited;
    double puts_end, gets_end;                     // of the last one so far
    std::unordered_map<Id, double> copy_ready_at;  // by value: when its last put is over
  };
  struct ValueClock {
    double ready_at = 0;   // when it has been got
    double idle_from = 0;  // when no transfer uses its memory any more
  };

  Span spend(double cost) {
    const double begin = now_;
    compute(cost);
    return {begin, now_};
  }
  Span occupy(Id value, Span span) {
    values_[value].idle_from = std::max(values_[value].idle_from, span.end);
    return span;
  }
  void wait_until(double time) {
    if (time <= now_) return;
    waited_ += time - now_;
    now_ = time;
  }

  double now_ = 0, waited_ = 0;
  std::vector<TierClock> tiers_;
  std::vector<ValueClock> values_;  // empty if no tier takes time
};

}  // namespace reprise::internal
