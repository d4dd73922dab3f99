// Which value to forget first: a queue that stays cheap for thousands of tiny values.
//
// A value is worth forgetting if it is cheap to rebuild, large, and needed last. Exact costs change all the time, so
// values are sorted once, by the cost of their own operator per byte, into a few classes, a factor of four apart; in
// each class the one that was saved first is needed last and comes first. Only the first of each class is then scored
// exactly. Values whose turn is known (advice.h) are in classes of their own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reprise/trace/trace.h"
#include "torch/advice.h"

namespace reprise::internal {

class VictimQueue {
 public:
  static constexpr int classes_of_turn = 16;
  static constexpr int classes = 5 * classes_of_turn;

  void add(Id value, double cost, Bytes bytes, float saved_at, Turn turn = Turn::unknown);
  [[nodiscard]] static Turn turn_of(int of_class) { return static_cast<Turn>(of_class / classes_of_turn); }

  // The first of this class that `usable` accepts, which says drop (it is no candidate any more), skip (in use now), or
  // take. It stays in the queue.
  enum class Answer : std::uint8_t { drop, skip, take };
  template <class Usable>
  [[nodiscard]] Id first(int of_class, Usable&& usable) {
    Heap& heap = heaps_[of_class];
    while (!heap.empty()) {
      const Answer answer = usable(heap.front().value);
      if (answer == Answer::take) return heap.front().value;
      if (answer == Answer::skip) busy_.push_back({heap.front(), of_class});
      pop(heap);
    }
    return -1;
  }
  // Those that were skipped are candidates again.
  void reconsider();
  [[nodiscard]] bool has_busy() const { return !busy_.empty(); }

 private:
  struct Entry {
    float saved_at;
    Id value;
  };
  using Heap = std::vector<Entry>;
  static void pop(Heap&);
  static void push(Heap&, Entry);

  std::array<Heap, classes> heaps_;
  std::vector<std::pair<Entry, int>> busy_;
};

}  // namespace reprise::internal
