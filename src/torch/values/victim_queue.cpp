#include "torch/values/victim_queue.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise::internal {
namespace {

constexpr auto saved_later = [](const auto& a, const auto& b) { return a.saved_at > b.saved_at; };

// Classes begin at a microsecond for each 16 MiB, and go up in steps of four.
constexpr double per_byte = 16 << 20;

int class_by_cost(double cost, Bytes bytes) {
  const double density = (cost + 1) / static_cast<double>(bytes) * per_byte;
  const double above = std::log2(std::max(1.0, density)) / 2;
  return static_cast<int>(std::min<double>(above, VictimQueue::classes_of_priority - 1));
}

}  // namespace

void VictimQueue::pop(Heap& heap) {
  std::pop_heap(heap.begin(), heap.end(), saved_later);
  heap.pop_back();
}

void VictimQueue::push(Heap& heap, Entry entry) {
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end(), saved_later);
}

void VictimQueue::add(Id value, double cost, Bytes bytes, float saved_at, EvictionPriority turn) {
  push(heaps_[static_cast<int>(turn) * classes_of_priority + class_by_cost(cost, bytes)], {saved_at, value});
}

double VictimQueue::most_in(int of_class, Bytes bytes) {
  const int by_cost = of_class % classes_of_priority;
  if (by_cost == classes_of_priority - 1) return std::numeric_limits<double>::infinity();
  return std::exp2(2 * (by_cost + 1)) / per_byte * static_cast<double>(bytes) - 1;
}

bool VictimQueue::move_first(int of_class, double cost, Bytes bytes) {
  const int now = class_by_cost(cost, bytes);
  if (now <= of_class % classes_of_priority) return false;
  const Entry entry = heaps_[of_class].front();
  pop(heaps_[of_class]);
  push(heaps_[of_class / classes_of_priority * classes_of_priority + now], entry);
  return true;
}

bool VictimQueue::reconsider() {
  const bool any = !skipped_.empty() || !busy_.empty();
  for (auto* const waiting : {&skipped_, &busy_}) {
    for (const auto& [entry, of_class] : *waiting) push(heaps_[of_class], entry);
    waiting->clear();
  }
  return any;
}

}  // namespace reprise::internal
