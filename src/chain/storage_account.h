// What a chain stores, counted in bytes and in states, and held against its limit.
#pragma once

#include <algorithm>

#include "chain/state_tiers.h"
#include "reprise/chain/internal/chain_states.h"
#include "reprise/chain/statistics.h"

namespace reprise::internal {

class StorageAccount {
 public:
  StorageAccount(const ChainStates& states, const StateTiers& tiers) : states_(states), tiers_(tiers) {}

  // Begins again with nothing stored and no limit. All other numbers stay. The tiers are empty already.
  void clear() noexcept;

  // Sets the most that may be stored. `reserve` is to be called before more is stored.
  void set_limit(Bytes bytes) { limit_ = bytes; }
  // Throws ChainError with the layer unless this many bytes more may be stored.
  void reserve(Bytes more, Id layer) const {
    if (limit_ != largest_bytes && stored_now() + more > limit_) fail_limit(more, layer);
  }

  // Count states, tapes and arrays outside of the tiers.
  void add(Bytes more) {
    bytes_ += more;
    statistics.stored += more;
    statistics.peak_stored = std::max(statistics.peak_stored, statistics.stored);
  }
  void subtract(Bytes less) {
    bytes_ -= less;
    statistics.stored -= less;
  }
  // Counts a state that takes the place of another one. For a moment there are both.
  void replace(Bytes before, Bytes after) {
    add(after);
    subtract(before);
    statistics.peak_remembered = std::max(statistics.peak_remembered, statistics.remembered + 1);
  }
  // Counts what the tiers have now.
  void count_tiers();

  // Count a state that is remembered, in whatever form.
  void add_remembered() {
    ++statistics.remembered;
    statistics.peak_remembered = std::max(statistics.peak_remembered, statistics.remembered);
  }
  void remove_remembered() { --statistics.remembered; }

  // What is counted here and, of calls, passes and what was not stored, by others.
  ChainStatistics statistics;
  // Returns the same with what the background thread has moved since it was counted.
  [[nodiscard]] ChainStatistics statistics_now() const;

 private:
  [[nodiscard]] Bytes stored_now() const { return bytes_ + tiers_.memory(); }
  [[noreturn]] void fail_limit(Bytes more, Id layer) const;

  const ChainStates& states_;
  const StateTiers& tiers_;
  Bytes bytes_ = 0;  // outside of the tiers
  Bytes limit_ = largest_bytes;
};

}  // namespace reprise::internal
