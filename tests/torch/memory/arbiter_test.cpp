// The arbiter: one at a time, again on the same thread, and how it is waited for.
#include "torch/memory/arbiter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "torch/libtorch/libtorch.h"
#include "torch/libtorch/pooled.h"

namespace reprise::testing {
using namespace internal;
namespace {

TEST(Arbiter, IsHeldByOneThreadAtATimeAndByThatAgain) {
  constexpr int threads = 4, times = 5000;
  int count = 0;  // what no thread but the one with the lock reads or writes
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < times; ++i) {
        const Arbiter lock;
        const int before = count;
        if (i % 64 == 0) std::this_thread::yield();
        const Arbiter again;
        count = before + 1;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(count, threads * times);
  EXPECT_FALSE(Arbiter::held());
}

std::atomic<int> waits = 0;

TEST(Arbiter, IsWaitedForAsTheBindingOfALanguageSays) {
  waits = 0;
  Arbiter::wait_with([](Arbiter::Mutex& arbiter) {
    ++waits;
    arbiter.lock();
  });
  std::thread other;
  {
    const Arbiter lock;
    EXPECT_EQ(waits, 0) << "it was free";
    other = std::thread([] { const Arbiter lock_there; });
    while (waits == 0) std::this_thread::yield();
  }
  other.join();
  Arbiter::wait_with(nullptr);
  EXPECT_EQ(waits, 1);
}

TEST(Arbiter, PutsAHandleAsideUntilItIsFree) {
  c10::Storage storage = libtorch::share(libtorch::storage_of(at::ones({4})));
  c10::weak_intrusive_ptr<c10::StorageImpl> watched(storage.getWeakStorageImpl());
  {
    const Arbiter lock;
    Arbiter::discard(std::move(storage));
    EXPECT_FALSE(storage);
    EXPECT_FALSE(watched.expired()) << "it may be freed only when the lock is free";
  }
  EXPECT_TRUE(watched.expired());
  storage = libtorch::share(libtorch::storage_of(at::ones({4})));
  watched = storage.getWeakStorageImpl();
  Arbiter::discard(std::move(storage));
  EXPECT_TRUE(watched.expired()) << "nothing is locked";
}

struct Counted : Pooled<Counted, 2> {
  std::int64_t number = 0;
};

TEST(Pooled, ServesAnObjectWithTheMemoryOfOneThatIsGone) {
#ifdef REPRISE_SANITIZED
  GTEST_SKIP() << "what is used after it was freed is to be seen";
#endif
  auto first = std::make_unique<Counted>();
  const void* const memory = first.get();
  first.reset();
  const auto next = std::make_unique<Counted>();
  EXPECT_EQ(next.get(), memory);
  EXPECT_EQ(next->number, 0);
}

TEST(Pooled, LetsObjectsGoOnAnotherThread) {
  std::vector<std::unique_ptr<Counted>> many(8);
  for (auto& one : many) one = std::make_unique<Counted>();
  std::thread([&] { many.clear(); }).join();  // that thread keeps some, and ends
  for (int i = 0; i < 3; ++i) many.push_back(std::make_unique<Counted>());
  EXPECT_NE(many[0].get(), many[1].get());
  EXPECT_NE(many[1].get(), many[2].get());
}

}  // namespace
}  // namespace reprise::testing
