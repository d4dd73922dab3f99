#include "torch/victim_queue.h"

#include <algorithm>
#include <cmath>

namespace reprise::internal {
namespace {

constexpr auto saved_later = [](const auto& a, const auto& b) { return a.saved_at > b.saved_at; };

}  // namespace

void VictimQueue::pop(Heap& heap) {
  std::pop_heap(heap.begin(), heap.end(), saved_later);
  heap.pop_back();
}

void VictimQueue::push(Heap& heap, Entry entry) {
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end(), saved_later);
}

void VictimQueue::add(Id value, double cost, Bytes bytes, float saved_at, Turn turn) {
  // From a microsecond for each 16 MiB up, in steps of four.
  const double density = (cost + 1) / static_cast<double>(bytes) * (16 << 20);
  const int by_cost = std::clamp(static_cast<int>(std::log2(std::max(1.0, density)) / 2), 0, classes_of_turn - 1);
  push(heaps_[static_cast<int>(turn) * classes_of_turn + by_cost], {saved_at, value});
}

void VictimQueue::reconsider() {
  for (const auto& [entry, of_class] : busy_) push(heaps_[of_class], entry);
  busy_.clear();
}

}  // namespace reprise::internal
