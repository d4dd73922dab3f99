// The heap behind the meter: where memory comes from and where it goes back to.
#include "torch/memory/heap.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "torch/memory/heap_sizes.h"

namespace reprise::internal::heap {
namespace {

TEST(HeapTest, MemoryIsAlignedAndFreedTheWayItCame) {
  // The first without the arena, unless another test made it already; then with it.
  std::vector<Piece> pieces;
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t bytes : {64ul, 128ul, large - 64, large, 3 * MiB}) {
      pieces.push_back(allocate(bytes, plenty));
      const Piece& piece = pieces.back();
      ASSERT_NE(piece.memory, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.memory) % 64, 0u);
      EXPECT_EQ(piece.block != nullptr, bytes >= large && keeping());
      EXPECT_NE(piece.block == nullptr, piece.malloced == nullptr);
      std::memset(piece.memory, 1, bytes);
    }
    keep();
  }
  for (const Piece& piece : pieces) release(piece);
}

// What follows is about the arena, which is not there in a build with the address sanitizer.
class HeapArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    keep();
    if (!keeping()) GTEST_SKIP() << "everything is malloc's";
    give_back();
  }
};

TEST_F(HeapArenaTest, FreedMemoryIsReusedWithoutFreshPages) {
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  const auto write = [](std::size_t bytes) {
    const Piece piece = allocate(bytes, plenty);
    std::memset(piece.memory, 1, bytes);
    return piece;
  };
  release(write(8 * MiB));
  const long before = faults();
  for (const std::size_t bytes : {8 * MiB, MiB, 5 * MiB, 7 * MiB}) release(write(bytes));
  const Piece one = write(3 * MiB), two = write(4 * MiB), three = write(MiB);
  EXPECT_LT(faults() - before, 100) << "8 MiB are 2048 pages";
  for (const Piece& piece : {one, two, three}) release(piece);
}

TEST_F(HeapArenaTest, FreedMemoryIsGivenBackWhenAsked) {
  const Piece piece = allocate(32 * MiB, plenty);
  release(piece);
  EXPECT_GE(cached(), static_cast<Bytes>(32 * MiB));
  shrink(static_cast<Bytes>(8 * MiB));
  EXPECT_LE(cached(), static_cast<Bytes>(8 * MiB));
  give_back();
  EXPECT_EQ(cached(), 0);
}

#ifndef REPRISE_SANITIZED  // a sanitizer's own memory is resident too
TEST_F(HeapArenaTest, ResidentMemoryStaysNearWhatIsInUse) {
  // As a training step does: mostly last in first out, sizes of a transformer, close to the budget all the time.
  constexpr Bytes budget = Bytes{100} << 20, target = budget + budget / 64;
  constexpr std::size_t sizes[] = {8 * MiB + 64, 4 * MiB + 64, MiB + 64, 3 * MiB + 64, 65600, 262208, 786496};
  const Bytes before = resident();
  std::mt19937 random(1);
  std::vector<std::pair<Piece, Bytes>> held;
  Bytes used = 0, most = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::size_t bytes = sizes[random() % std::size(sizes)];
    while (used + static_cast<Bytes>(bytes) > budget) {
      const std::size_t at = random() % 3 != 0 ? held.size() - 1 : random() % held.size();
      used -= held[at].second;
      release(held[at].first);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    }
    used += static_cast<Bytes>(bytes);
    held.emplace_back(allocate(bytes, target - used), bytes);
    std::memset(held.back().first.memory, 1, bytes);
    if (i % 8 == 0) most = std::max(most, resident() - before);
  }
  EXPECT_GT(most, budget * 9 / 10);
  EXPECT_LT(most, budget * 105 / 100);
  for (const auto& [piece, bytes] : held) release(piece);
  EXPECT_GT(resident() - before, budget * 9 / 10) << "kept";
  give_back();
  EXPECT_LT(resident() - before, budget / 50) << "given back";
}

TEST_F(HeapArenaTest, AChildOfForkCanAllocateWhateverOtherThreadsDid) {
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) release(allocate(large, plenty));
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      const Piece piece = allocate(MiB, plenty);
      std::memset(piece.memory, 1, MiB);
      release(piece);
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}
#endif

TEST(HeapThreadTest, ManyThreadsMayAllocateAndFreeForEachOther) {
  keep();
  static std::atomic<void*> shared[8];
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([seed] {
      std::minstd_rand random(seed);
      const auto swap = [&](Piece* piece) { return static_cast<Piece*>(shared[random() % 8].exchange(piece)); };
      const auto end = [](Piece* piece) {
        if (piece == nullptr) return;
        release(*piece);
        delete piece;
      };
      for (int i = 0; i < 2000; ++i) {
        const std::size_t bytes = (1 + random() % 20) * 16384;
        const Bytes cache = random() % 2 == 0 ? plenty : 100'000;
        auto* const piece = new Piece(allocate(bytes, cache));
        static_cast<char*>(piece->memory)[random() % bytes] = 1;
        end(swap(piece));
      }
      for (int i = 0; i < 16; ++i) end(swap(nullptr));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : shared) {
    if (auto* const piece = static_cast<Piece*>(slot.exchange(nullptr))) {
      release(*piece);
      delete piece;
    }
  }
}

}  // namespace
}  // namespace reprise::internal::heap
