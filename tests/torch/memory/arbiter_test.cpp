// The arbiter: one at a time, again on the same thread, and how it is waited for.
#include "torch/memory/arbiter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
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

TEST(Arbiter, KeepsAHandleThatIsDiscardedUntilItIsFree) {
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

TEST(Arbiter, RunsWhatWasLeftForAfterWhenTheOutermostHasReleasedTheLockInOrder) {
  std::vector<int> ran;
  const auto note = [&](int number) {
    return [&ran, number] {
      EXPECT_FALSE(Arbiter::held());
      ran.push_back(number);
    };
  };
  {
    const Arbiter lock;
    Arbiter::after(note(1));
    {
      const Arbiter inner;
      Arbiter::after(note(2));
    }
    Arbiter::after([&, owned = std::make_unique<int>(3)] { note (*owned)(); });
    EXPECT_TRUE(ran.empty());
  }
  EXPECT_EQ(ran, (std::vector{1, 2, 3}));
  Arbiter::after(note(4));
  EXPECT_EQ(ran.back(), 4) << "nothing is locked";
}

TEST(Arbiter, RunsWhatIsLeftForAfterByWhatRunsAfterBeforeThatEnds) {
  std::vector<int> ran;
  {
    const Arbiter lock;
    Arbiter::after([&] {
      {
        const Arbiter again;
        Arbiter::after([&] { ran.push_back(1); });
        EXPECT_TRUE(ran.empty());
      }
      EXPECT_EQ(ran.size(), 1U);
      ran.push_back(2);
    });
    Arbiter::after([&] { ran.push_back(3); });
  }
  EXPECT_EQ(ran, (std::vector{1, 2, 3}));
}

TEST(Arbiter, RunsAllThatWasLeftForAfterAlsoWhenSomethingThrows) {
  int ran = 0;
  const auto leave_three = [&] {
    Arbiter::after([&] {
      ++ran;
      throw std::runtime_error("the first");
    });
    Arbiter::after([&] {
      ++ran;
      throw std::runtime_error("the second");
    });
    Arbiter::after([&] { ++ran; });
  };
  try {
    const Arbiter lock;
    leave_three();
    throw std::logic_error("another");
  } catch (const std::logic_error&) {
    EXPECT_EQ(ran, 3) << "while the exception left the scope";
  }
  {
    const Arbiter lock;
    leave_three();
  }
  EXPECT_EQ(ran, 6);
  leave_three();
  EXPECT_EQ(ran, 9);
  try {
    Arbiter lock;
    leave_three();
    lock.unlock();
    ADD_FAILURE() << "it throws what the first of them threw";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the first");
  }
  EXPECT_EQ(ran, 12);
  EXPECT_FALSE(Arbiter::held());
}

TEST(Arbiter, IsStillHeldByTheOutermostAfterAnInnerUnlock) {
  bool ran = false;
  Arbiter lock;
  {
    Arbiter inner;
    Arbiter::after([&] { ran = true; });
    inner.unlock();
  }
  EXPECT_TRUE(Arbiter::held());
  EXPECT_FALSE(ran);
  lock.unlock();
  EXPECT_FALSE(Arbiter::held());
  EXPECT_TRUE(ran);
}

TEST(Arbiter, RunsWhatWasLeftForAfterOnTheThreadThatLeftItAndLetsOthersIn) {
  constexpr int threads = 4, times = 50;
  std::vector<int> ran(threads);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < times; ++i) {
        const Arbiter lock;
        Arbiter::after([&, t, on = std::this_thread::get_id()] {
          EXPECT_EQ(std::this_thread::get_id(), on);
          std::thread([] { const Arbiter lock_there; }).join();  // it is free: another one can have it
          ++ran[t];
        });
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(ran, std::vector<int>(threads, times));
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
