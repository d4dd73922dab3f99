// Memory of any size that is all the same few pages.
#include "torch/memory/shared_pages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace reprise::internal {
namespace {

constexpr std::size_t page = 4096, own = SharedPages::own;

std::byte* data_of(void* piece) {
  return static_cast<std::byte*>(piece) + own;
}

TEST(SharedPages, ArePiecesOfAnySizeWithAHeaderOfTheirOwn) {
  SharedPages pages(4 * page);
  std::vector<void*> pieces;
  for (int i = 0; i < 20; ++i) {
    pieces.push_back(pages.allocate(own + 100 * page + static_cast<std::size_t>(i)));
    ASSERT_NE(pieces.back(), nullptr);
    std::memset(pieces.back(), i, own);
    std::memset(data_of(pieces.back()), 100 + i, 100 * page + static_cast<std::size_t>(i));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(pages.has(pieces[i]));
    for (std::size_t k = 0; k < own; ++k) EXPECT_EQ(static_cast<std::byte*>(pieces[i])[k], std::byte(i));
    EXPECT_EQ(data_of(pieces[i])[0], std::byte{119}) << "what was written last";
  }
  EXPECT_EQ(std::set<void*>(pieces.begin(), pieces.end()).size(), 20u);
  for (void* const piece : pieces) pages.release(piece);
  for (void* const piece : pieces) EXPECT_FALSE(pages.has(piece));
}

TEST(SharedPages, StayAsTheyAreWithinTheWindow) {
  SharedPages pages(64 * page);
  void* const one = pages.allocate(own + 8 * page);
  void* const other = pages.allocate(own + 8 * page);
  std::memset(data_of(one), 1, 8 * page);
  std::memset(data_of(other), 2, 8 * page);
  EXPECT_EQ(data_of(one)[5 * page], std::byte{1});
  EXPECT_EQ(data_of(other)[5 * page], std::byte{2});
}

TEST(SharedPages, CanBeClearedAndAreTheirOwnThen) {
  SharedPages pages(4 * page);
  void* const one = pages.allocate(own + 8 * page);
  void* const other = pages.allocate(own + 8 * page);
  std::memset(data_of(one), 1, 8 * page);
  EXPECT_TRUE(pages.clear(one));
  EXPECT_EQ(data_of(one)[3 * page], std::byte{0});
  data_of(one)[3 * page] = std::byte{7};
  std::memset(data_of(other), 2, 8 * page);
  EXPECT_TRUE(pages.clear(one));
  EXPECT_EQ(data_of(one)[3 * page], std::byte{7}) << "cleared once";
  pages.release(one);
  pages.release(other);
}

}  // namespace
}  // namespace reprise::internal
