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
  // It comes to be resident.
  void arrive(Id value) {
    if (!values_.empty()) values_[value].there = 0;
  }
  // Somebody needs it.
  void need(Id value) {
    if (!values_.empty()) wait_until(values_[value].there);
  }
  // Its memory goes, to nobody or to another value, or to the program, which may write into it.
  void wait_for_transfers(Id value) {
    if (!values_.empty()) wait_until(values_[value].idle);
  }

  // The tier's own span; that of the computation if the tier does nothing beside it.
  Span put(Id value, Id t, const TierEntry& entry) {
    const Span own = spend(entry.put_cost);
    OfTier& tier = tiers_[t];
    if (!tier.overlaps) return own;
    double begin = std::max({now_, values_[value].there, tier.puts_end});
    if (!tier.duplex || tier.limited) begin = std::max(begin, tier.gets_end);
    tier.puts_end = tier.copy_there[value] = begin + entry.put_time;
    return occupy(value, {begin, tier.puts_end});
  }
  Span get(Id value, Id t, const TierEntry& entry) {
    const Span own = spend(entry.get_cost);
    OfTier& tier = tiers_[t];
    if (!tier.overlaps) return own;
    double begin = std::max({now_, tier.copy_there[value], tier.gets_end});
    if (!tier.duplex) begin = std::max(begin, tier.puts_end);
    tier.gets_end = values_[value].there = begin + entry.get_time;
    return occupy(value, {begin, tier.gets_end});
  }

 private:
  struct OfTier {
    bool overlaps, duplex, limited;
    double puts_end, gets_end;                  // of the last one so far
    std::unordered_map<Id, double> copy_there;  // by value: when its last put is over
  };
  struct OfValue {
    double there = 0;  // when it has been got
    double idle = 0;   // when no transfer uses its memory
  };

  Span spend(double cost) {
    const double begin = now_;
    compute(cost);
    return {begin, now_};
  }
  Span occupy(Id value, Span span) {
    values_[value].idle = std::max(values_[value].idle, span.end);
    return span;
  }
  void wait_until(double time) {
    if (time <= now_) return;
    waited_ += time - now_;
    now_ = time;
  }

  double now_ = 0, waited_ = 0;
  std::vector<OfTier> tiers_;
  std::vector<OfValue> values_;  // empty if no tier takes time
};

}  // namespace reprise::internal
