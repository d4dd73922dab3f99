// Which value to evict first: a queue that stays cheap for thousands of tiny values.
//
// A value is worth evicting if it is cheap to recompute, large, and needed last. Exact costs change all the time, so
// values are sorted by the cost of their own operator per byte into a few classes, a factor of four apart; in each
// class the one that was saved first is needed last and comes first. Only the first of each class is then scored
// exactly. If that finds it to be dearer than its class, because what it is made of is gone, it goes to where it
// belongs, and the next one is looked at: or one sum that only a matrix product brings back would keep all masks behind
// it. Values whose turn is known (eviction_hints.h) are in classes of their own.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "reprise/trace/trace.h"
#include "torch/plans/eviction_hints.h"

namespace reprise::internal {

class VictimQueue {
 public:
  static constexpr int classes_of_priority = 16;
  static constexpr int classes = 5 * classes_of_priority;

  void add(Id value, double cost, Bytes bytes, float saved_at, EvictionPriority turn = EvictionPriority::unknown);
  [[nodiscard]] static EvictionPriority priority_of(int of_class) {
    return static_cast<EvictionPriority>(of_class / classes_of_priority);
  }

  // The first of this class that `usable` accepts, which says take (it stays in the queue), drop (it is no candidate
  // any more), skip (not if there are others), or busy (it is in use now).
  enum class Answer : std::uint8_t { drop, skip, busy, take };
  template <class Usable>
  [[nodiscard]] Id first(int of_class, Usable&& usable) {
    Heap& heap = heaps_[of_class];
    while (!heap.empty()) {
      const Answer answer = usable(heap.front().value);
      if (answer == Answer::take) return heap.front().value;
      if (answer == Answer::skip) skipped_.push_back({heap.front(), of_class});
      if (answer == Answer::busy) busy_.push_back({heap.front(), of_class});
      pop(heap);
    }
    return -1;
  }
  // A value of so many bytes that costs more does not belong in this class.
  [[nodiscard]] static double most_in(int of_class, Bytes bytes);
  // The first of this class costs so much by now. True: it goes to a dearer class, where it belongs.
  bool move_first(int of_class, double cost, Bytes bytes);
  // Those that were busy, and are no more, are candidates again.
  template <class IsBusy>
  void look_after_busy(IsBusy&& is_busy) {
    std::erase_if(busy_, [&](const Waiting& one) {
      if (is_busy(one.first.value)) return false;
      push(heaps_[one.second], one.first);
      return true;
    });
  }
  // All that were skipped or busy are candidates again. False: there were none.
  bool reconsider();

 private:
  struct Entry {
    float saved_at;
    Id value;
  };
  using Heap = std::vector<Entry>;
  using Waiting = std::pair<Entry, int>;  // and its class
  static void pop(Heap&);
  static void push(Heap&, Entry);

  std::array<Heap, classes> heaps_;
  std::vector<Waiting> skipped_, busy_;
};

}  // namespace reprise::internal
