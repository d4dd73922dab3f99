// The arena: memory for large blocks, cut, merged and moved without touching what is in use.
#include "torch/memory/arena.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "torch/memory/heap.h"
#include "torch/memory/heap_sizes.h"

namespace reprise::internal::heap {
namespace {

#ifdef REPRISE_SANITIZED
constexpr std::uint64_t rounds = 200;
#else
constexpr std::uint64_t rounds = 2000;
#endif

// The first block of the region that this one is in.
const Block* region(const Block* block) {
  while (block->before != nullptr) block = block->before;
  return block;
}

// What is told about blocks in arena.h; returns how many bytes are cached.
Bytes check(const Block* first) {
  Bytes cached = 0;
  for (const Block* block = first; block != nullptr; block = block->after) {
    EXPECT_GT(block->bytes, 0u);
    if (block->state == Block::State::cached) cached += static_cast<Bytes>(block->bytes);
    if (block->after == nullptr) break;
    EXPECT_EQ(block->end(), block->after->first());
    EXPECT_EQ(block->after->before, block);
    EXPECT_TRUE(block->state == Block::State::used || block->state != block->after->state);
  }
  return cached;
}

TEST(ArenaTest, FreedNeighboursAreOneBlock) {
  Arena arena;
  Block* const one = arena.allocate(MiB, plenty);
  Block* const two = arena.allocate(2 * MiB, plenty);
  Block* const three = arena.allocate(3 * MiB, plenty);
  Block* const last = arena.allocate(64 * KiB, plenty);
  char* const start = one->start;
  EXPECT_EQ(two->start, start + MiB);
  arena.release(three);
  arena.release(one);
  EXPECT_EQ(arena.cached(), static_cast<Bytes>(4 * MiB));
  arena.release(two);
  EXPECT_EQ(check(region(last)), static_cast<Bytes>(6 * MiB));
  Block* const all = arena.allocate(6 * MiB, plenty);
  EXPECT_EQ(all->start, start);
  EXPECT_EQ(arena.cached(), 0);
}

TEST(ArenaTest, TheSmallestFreedBlockThatHoldsARequestServesIt) {
  Arena arena;
  std::vector<Block*> blocks;
  for (const std::size_t bytes : {4 * MiB, 64 * KiB, 2 * MiB, 64 * KiB, 3 * MiB, 64 * KiB}) {
    blocks.push_back(arena.allocate(bytes, plenty));
  }
  char* const three = blocks[4]->start;
  for (const int i : {0, 2, 4}) arena.release(blocks[static_cast<std::size_t>(i)]);
  Block* const fit = arena.allocate(2 * MiB + 64, plenty);
  EXPECT_EQ(fit->start, three);
  EXPECT_EQ(check(region(fit)), static_cast<Bytes>(7 * MiB - 64)) << "what is left over is cached";
}

TEST(ArenaTest, WhatIsTooSmallAloneIsPutToUseWhereItBordersOnEmptyAddresses) {
  Arena arena;
  Block* const one = arena.allocate(MiB, plenty);
  Block* const two = arena.allocate(MiB, plenty);
  char* const start = two->start;
  arena.release(two);
  Block* const larger = arena.allocate(3 * MiB, 0);
  EXPECT_EQ(larger->start, start);
  EXPECT_EQ(arena.cached(), 0);
  check(region(one));
}

TEST(ArenaTest, NoMoreIsCachedThanMayBe) {
  Arena arena;
  std::vector<Block*> blocks;
  for (int i = 0; i < 32; ++i) blocks.push_back(arena.allocate(MiB, plenty));
  for (std::size_t i = 0; i < 32; i += 2) arena.release(blocks[i]);
  EXPECT_EQ(arena.cached(), static_cast<Bytes>(16 * MiB)) << "freeing alone keeps the sum of used and cached bytes";
  Block* const fresh = arena.allocate(2 * MiB, static_cast<Bytes>(10 * MiB));
  EXPECT_LE(arena.cached(), static_cast<Bytes>(10 * MiB));
  EXPECT_GT(arena.cached(), static_cast<Bytes>(10 * MiB - 16 * KiB)) << "and no less than needed";
  EXPECT_EQ(check(region(fresh)), arena.cached());
  arena.shrink(static_cast<Bytes>(MiB));
  EXPECT_LE(arena.cached(), static_cast<Bytes>(MiB));
  arena.shrink(-1);
  EXPECT_EQ(check(region(fresh)), 0);
}

TEST(ArenaTest, WhatIsOfferedToTheSystemStaysCachedAndServesRequests) {
  Arena arena;
  std::vector<Block*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(arena.allocate(MiB, plenty));
  for (Block* const block : blocks) std::memset(block->start, 1, block->bytes);
  for (std::size_t i = 0; i < 16; i += 2) arena.release(blocks[i]);
  std::uintptr_t from = 0;
  int parts = 0;
  while ((from = arena.offer(from, 300 * KiB)) != 0) ++parts;
  EXPECT_EQ(parts, 8 * 4) << "a little at a time";
  EXPECT_EQ(check(region(blocks[1])), static_cast<Bytes>(8 * MiB));
  for (std::size_t i = 1; i < 16; i += 2) {
    EXPECT_EQ(std::count(blocks[i]->start, blocks[i]->start + MiB, 1), static_cast<std::ptrdiff_t>(MiB));
  }
  Block* const again = arena.allocate(MiB, plenty);
  std::memset(again->start, 2, again->bytes);
  EXPECT_EQ(std::count(again->start, again->start + MiB, 2), static_cast<std::ptrdiff_t>(MiB));
  EXPECT_EQ(arena.cached(), static_cast<Bytes>(7 * MiB));
}

TEST(ArenaTest, WhatWasFreedLongestAgoGoesFirst) {
  Arena arena;
  std::vector<Block*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(arena.allocate(MiB, plenty));
  for (const std::size_t i : {5, 1, 3}) arena.release(blocks[i]);
  arena.shrink(static_cast<Bytes>(2 * MiB));
  arena.shrink(static_cast<Bytes>(MiB));
  EXPECT_EQ(arena.allocate(MiB, plenty)->start, blocks[2]->start + MiB) << "the third, freed last, is still there";
}

TEST(ArenaTest, ABlockIsAsOldAsItsYoungestPart) {
  Arena arena;
  std::vector<Block*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(arena.allocate(MiB, plenty));
  char* const first = blocks[1]->start;
  for (const std::size_t i : {1, 5, 2}) arena.release(blocks[i]);
  arena.shrink(static_cast<Bytes>(2 * MiB));
  EXPECT_EQ(arena.allocate(2 * MiB, plenty)->start, first);
  EXPECT_EQ(arena.cached(), 0) << "the other one went";
}

// Everything that happens to a block's pages happens here thousands of times, with little cache so that they move.
TEST(ArenaTest, WhatIsInUseIsNeverTouched) {
  struct Held {
    Block* block;
    std::uint64_t mark;
  };
  for (const Bytes target : {Bytes{0}, Bytes{36} << 20, plenty}) {
    Arena arena;
    std::mt19937 random(7);
    std::vector<Held> held;
    Bytes used = 0;
    const auto word = [](const Held& one, std::size_t at) -> std::uint64_t& {
      return reinterpret_cast<std::uint64_t*>(one.block->start)[at];
    };
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      const std::size_t bytes = (random() % 3 == 0 ? random() % (8 * MiB) : random() % MiB) / 64 * 64 + 64 * KiB;
      while (!held.empty() && used + static_cast<Bytes>(bytes) > Bytes{32} << 20) {
        const std::size_t at = random() % 2 == 0 ? held.size() - 1 : random() % held.size();
        const Held one = std::exchange(held[at], held.back());
        held.pop_back();
        const std::size_t words = one.block->bytes / 8;
        for (std::size_t w = 0; w < words; w += w + 24 < words ? 24 : 1) ASSERT_EQ(word(one, w), one.mark + w);
        used -= static_cast<Bytes>(one.block->bytes);
        arena.release(one.block);
      }
      used += static_cast<Bytes>(bytes);
      const Held one{arena.allocate(bytes, target - used), i << 32};
      ASSERT_NE(one.block, nullptr);
      ASSERT_EQ(one.block->first() % 64, 0u);
      for (std::size_t w = 0; w < bytes / 8; w += w + 24 < bytes / 8 ? 24 : 1) word(one, w) = one.mark + w;
      held.push_back(one);
    }
    EXPECT_EQ(check(region(held.front().block)), arena.cached());
  }
}

TEST(ArenaTest, RegionsAreAddedWhenAddressesRunOut) {
  Arena arena;
  constexpr std::size_t GiB = 1 << 30;
  std::vector<Block*> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(arena.allocate(GiB - 64 * KiB, 0));
    ASSERT_NE(blocks.back(), nullptr);
    blocks.back()->start[GiB / 2] = 1;
  }
  Block* const small = arena.allocate(64 * KiB, 0);
  for (Block* const block : blocks) arena.release(block);
  arena.shrink(0);
  for (Block* const block : {arena.allocate(3 * GiB, 0), small}) check(region(block));
}

#ifndef REPRISE_SANITIZED
TEST(ArenaTest, RefusesWhatTheSystemDoesNotHave) {
  Arena arena;
  EXPECT_EQ(arena.allocate(std::size_t{1} << 50, plenty), nullptr);
  Block* const block = arena.allocate(MiB, plenty);
  ASSERT_NE(block, nullptr);
  check(region(block));
}

TEST(ArenaTest, PagesMoveToWhereTheyAreWanted) {
  Arena arena;
  const auto write = [&](std::size_t bytes) {
    Block* const block = arena.allocate(bytes, 0);
    std::memset(block->start, 1, bytes);
    return block;
  };
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  std::vector<Block*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(write(2 * MiB));
  for (std::size_t i = 0; i < 16; i += 2) arena.release(blocks[i]);
  const long before = faults();
  write(16 * MiB);
  if (!arena.moves()) GTEST_SKIP() << "the system does not";
  EXPECT_LT(faults() - before, 1024) << "16 MiB are 4096 pages";
}

TEST(ArenaTest, ResidentMemoryIsWhatIsUsedAndCached) {
  Arena arena;
  const Bytes before = resident();
  const auto grown = [&] { return (resident() - before) >> 20; };
  std::vector<Block*> blocks;
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(arena.allocate(MiB, plenty));
    std::memset(blocks.back()->start, 1, MiB);
  }
  EXPECT_NEAR(static_cast<double>(grown()), 64, 2);
  for (std::size_t i = 0; i < 64; i += 2) arena.release(blocks[i]);
  EXPECT_NEAR(static_cast<double>(grown()), 64, 2);
  Block* const fresh = arena.allocate(16 * MiB, static_cast<Bytes>(16 * MiB));
  std::memset(fresh->start, 1, fresh->bytes);
  EXPECT_NEAR(static_cast<double>(grown()), 64, 2) << "32 and 16 used, 16 cached";
  arena.release(fresh);
  arena.shrink(0);
  EXPECT_NEAR(static_cast<double>(grown()), 32, 2);
}
#endif

}  // namespace
}  // namespace reprise::internal::heap
