// The queue of values that may be evicted: cheap per byte before expensive ones, and the oldest of each class first.
#include "torch/values/victim_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace reprise::internal {
namespace {

using Answer = VictimQueue::Answer;

constexpr Bytes mebibyte = 1 << 20;

Answer take_any(Id) {
  return Answer::take;
}

// Everything that is left, class by class, as it would be offered.
std::vector<Id> drained(VictimQueue& queue) {
  std::vector<Id> order;
  for (int c = 0; c < VictimQueue::classes; ++c) {
    (void)queue.first(c, [&](Id value) {
      order.push_back(value);
      return Answer::drop;
    });
  }
  return order;
}

// The class that offers this value first; -1: none does.
int class_of(VictimQueue& queue, Id value) {
  for (int c = 0; c < VictimQueue::classes; ++c) {
    if (queue.first(c, take_any) == value) return c;
  }
  return -1;
}

TEST(VictimQueue, OffersNothingWhenItIsEmpty) {
  VictimQueue queue;
  for (int c = 0; c < VictimQueue::classes; ++c) EXPECT_EQ(queue.first(c, take_any), -1);
  EXPECT_FALSE(queue.reconsider());
}

TEST(VictimQueue, OffersWhatWasSavedFirstAmongValuesOfTheSameCostPerByte) {
  VictimQueue queue;
  queue.add(1, 100, mebibyte, 30);
  queue.add(2, 100, mebibyte, 10);
  queue.add(3, 100, mebibyte, 20);
  EXPECT_EQ(drained(queue), (std::vector<Id>{2, 3, 1}));
}

TEST(VictimQueue, SortsByCostPerByteIntoClassesAFactorOfFourApart) {
  VictimQueue queue;
  queue.add(1, 4095, mebibyte, 1);  // a microsecond is added to every cost
  queue.add(2, 1023, mebibyte, 2);
  queue.add(3, 1023, 4 * mebibyte, 3);  // as cheap per byte as 255 for one
  queue.add(4, 255, mebibyte, 4);
  EXPECT_EQ(drained(queue), (std::vector<Id>{3, 4, 2, 1}));
}

TEST(VictimQueue, LooksBehindOneThatHasBecomeDearer) {
  VictimQueue queue;
  queue.add(1, 100, mebibyte, 1);
  queue.add(2, 100, mebibyte, 2);
  const int cheap = class_of(queue, 1);
  EXPECT_FALSE(queue.move_first(cheap, 100, mebibyte));
  EXPECT_EQ(queue.first(cheap, take_any), 1);
  EXPECT_TRUE(queue.move_first(cheap, 100'000, mebibyte));
  EXPECT_EQ(queue.first(cheap, take_any), 2);
  EXPECT_GT(class_of(queue, 1), cheap);
  EXPECT_FALSE(queue.move_first(class_of(queue, 1), 1, mebibyte)) << "one that became cheaper stays where it is";
  EXPECT_EQ(drained(queue), (std::vector<Id>{2, 1}));
}

TEST(VictimQueue, MovesWhatCostsMoreThanTheMostInItsClassAndNothingElse) {
  for (const Bytes bytes : {Bytes{64}, mebibyte, Bytes{1} << 40}) {
    for (const double cost : {0.0, 1.0, 300.0, 1e6, 1e12}) {
      VictimQueue queue;
      queue.add(1, cost, bytes, 1, EvictionPriority::late);
      const int before = class_of(queue, 1);
      const double most = VictimQueue::most_in(before, bytes);
      EXPECT_GE(most, cost);
      EXPECT_FALSE(queue.move_first(before, 0.999 * most, bytes));
      if (std::isinf(most)) continue;
      EXPECT_TRUE(queue.move_first(before, 1.001 * most + 0.001, bytes));
      EXPECT_EQ(VictimQueue::priority_of(class_of(queue, 1)), EvictionPriority::late);
    }
  }
}

TEST(VictimQueue, HasAClassForTheCheapestAndForTheMostExpensiveValue) {
  VictimQueue queue;
  queue.add(1, 1e12, 1, 1);
  queue.add(2, 0, Bytes{1} << 50, 2);
  EXPECT_EQ(drained(queue), (std::vector<Id>{2, 1}));
}

TEST(VictimQueue, HasClassesOfTheirOwnForValuesWhoseTurnIsKnown) {
  VictimQueue queue;
  queue.add(1, 100, mebibyte, 1, EvictionPriority::last);
  queue.add(2, 100, mebibyte, 2);
  queue.add(3, 1000, mebibyte, 3, EvictionPriority::first);
  std::map<Id, EvictionPriority> turns;
  for (int c = 0; c < VictimQueue::classes; ++c) {
    if (const Id value = queue.first(c, take_any); value >= 0) turns[value] = VictimQueue::priority_of(c);
  }
  EXPECT_EQ(turns, (std::map<Id, EvictionPriority>{
                       {1, EvictionPriority::last}, {2, EvictionPriority::unknown}, {3, EvictionPriority::first}}));
  EXPECT_EQ(drained(queue), (std::vector<Id>{3, 2, 1}));
}

TEST(VictimQueue, KeepsWhatIsTaken) {
  VictimQueue queue;
  queue.add(7, 0, mebibyte, 1);
  const int of_class = class_of(queue, 7);
  ASSERT_GE(of_class, 0);
  EXPECT_EQ(queue.first(of_class, take_any), 7);
}

TEST(VictimQueue, OffersWhatWasSkippedAgainOnceItIsReconsidered) {
  VictimQueue queue;
  queue.add(1, 100, mebibyte, 1);
  queue.add(2, 100, mebibyte, 2);
  std::vector<Id> offered;
  for (int c = 0; c < VictimQueue::classes; ++c) {
    const Id first = queue.first(c, [](Id value) { return value == 1 ? Answer::skip : Answer::take; });
    if (first >= 0) offered.push_back(first);
  }
  EXPECT_EQ(offered, (std::vector<Id>{2}));
  EXPECT_TRUE(queue.reconsider());
  EXPECT_FALSE(queue.reconsider());
  EXPECT_EQ(drained(queue), (std::vector<Id>{1, 2}));
}

TEST(VictimQueue, OffersWhatWasBusyAgainAsSoonAsItIsNot) {
  VictimQueue queue;
  for (const Id value : {1, 2, 3}) queue.add(value, 100, mebibyte, static_cast<float>(value));
  const int of_class = class_of(queue, 1);
  EXPECT_EQ(queue.first(of_class, [](Id value) { return value == 3 ? Answer::take : Answer::busy; }), 3);
  queue.look_after_busy([](Id value) { return value == 1; });
  EXPECT_EQ(queue.first(of_class, take_any), 2);
  queue.look_after_busy([](Id) { return false; });
  EXPECT_EQ(drained(queue), (std::vector<Id>{1, 2, 3}));
}

// Against a plain map from class and time to value.
TEST(VictimQueue, OffersEveryValueOnceAndInOrderWhateverCameBetween) {
  std::mt19937 random(1);
  VictimQueue queue;
  std::map<Id, float> saved;
  for (Id value = 0; value < 2000; ++value) {
    const auto at = static_cast<float>(random() % 100'000);
    saved[value] = at;
    queue.add(value, static_cast<double>(random() % 10'000), Bytes{1} << (random() % 26), at);
    if (value % 7 == 0) {
      for (int c = 0; c < VictimQueue::classes; ++c) {
        (void)queue.first(
            c, [&](Id) { return random() % 2 == 0 ? random() % 2 == 0 ? Answer::skip : Answer::busy : Answer::take; });
      }
      queue.look_after_busy([&](Id) { return random() % 2 == 0; });
      queue.reconsider();
    }
  }
  for (int c = 0; c < VictimQueue::classes; ++c) {
    float last = -1;
    (void)queue.first(c, [&](Id value) {
      EXPECT_EQ(saved.count(value), 1u) << "offered twice: " << value;
      EXPECT_GE(saved[value], last);
      last = saved[value];
      saved.erase(value);
      return Answer::drop;
    });
  }
  EXPECT_TRUE(saved.empty());
}

}  // namespace
}  // namespace reprise::internal
