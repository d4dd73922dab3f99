// The arena: memory for large blocks that is reused across sizes and costs few fresh pages.
//
// It takes addresses from the system, a lot at a time, and cuts blocks out of them: used ones, cached ones (freed,
// their pages still resident) and empty ones (without pages). A request gets the smallest cached block that holds it.
// If there is none it gets an empty one, and now more is resident than before. A fresh page costs several times what
// writing it costs, so memory that was freed is not simply given back for it: whole chunks of the pages that were freed
// longest ago are moved there by changing the page tables, which costs next to nothing, and only the rest goes back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>

#include "reprise/trace/trace.h"

namespace reprise::internal::heap {

struct Block;

struct BySize {
  using is_transparent = void;
  bool operator()(const Block* one, const Block* two) const;
  bool operator()(const Block* one, std::size_t bytes) const;
};
using Shelf = std::set<Block*, BySize>;

// A stretch of addresses. The blocks of a region follow each other without gaps, and no two neighbours are both cached
// or both empty.
struct Block {
  enum class State {
    used,
    cached,  // freed, its pages are still resident
    empty,   // its pages were never touched, or are gone; but for those it shares with a neighbour
  };

  char* start = nullptr;  // 64 byte aligned if all requests are multiples of 64
  std::size_t bytes = 0;
  State state = State::empty;
  std::uint64_t freed = 0;  // when, on the arena's clock
  Block* before = nullptr;
  Block* after = nullptr;
  Shelf::node_type place;  // its place on a shelf while it is on none: so freeing needs no memory and cannot fail

  [[nodiscard]] std::uintptr_t first() const { return reinterpret_cast<std::uintptr_t>(start); }
  [[nodiscard]] std::uintptr_t end() const { return first() + bytes; }
};

// For one thread at a time.
class Arena {
 public:
  Arena();
  ~Arena();  // ends all its blocks
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `cache`: how many freed bytes may stay resident. nullptr: the system gives no more.
  [[nodiscard]] Block* allocate(std::size_t bytes, Bytes cache);
  void release(Block*);

  // Returns freed bytes to the system, longest freed first, until no more than `cache` are resident.
  void shrink(Bytes cache);

  // Lets the system take the pages of freed blocks if it needs memory; until then they stay cached. Looks at this many
  // bytes of addresses from `from` on, and returns where to go on; 0: that was all.
  std::uintptr_t offer(std::uintptr_t from, std::size_t bytes);

  [[nodiscard]] Bytes cached() const { return cached_bytes_; }
  // Returns the number of blocks that were freed since the start.
  [[nodiscard]] std::uint64_t freed() const { return clock_; }
  // Returns whether the system moves pages; if not, they go back and fresh ones are taken.
  [[nodiscard]] bool moves() const { return moves_; }

 private:
  // Pages move in chunks at multiples of their size, and inside a region: at worst every chunk becomes a mapping of its
  // own, and a process may have 65530 of them.
  struct Region {
    Block* blocks = nullptr;  // the first of them, for ever: a block is absorbed by the one before it
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    std::size_t chunk = 0;
  };

  Shelf& shelf(Block::State);
  void put(Block*);
  Block* taken(Block*);
  bool have_spare();
  void cut(Block*, std::size_t bytes);
  void absorb_after(Block*);
  Block* merged(Block*);
  Block* made_of_empty(std::size_t bytes);
  Block* new_region(std::size_t bytes);
  [[nodiscard]] const Region& region_of(std::uintptr_t) const;
  void drop(Block*, std::size_t bytes);
  void remove_pages(std::uintptr_t first, std::uintptr_t end);
  bool move_pages(std::uintptr_t from, std::uintptr_t to, std::size_t bytes);

  const std::size_t page_;
  std::array<Region, 48> regions_;  // each at least twice the last: more than there are addresses
  std::size_t region_count_ = 0;
  Shelf cached_, empty_;
  Bytes cached_bytes_ = 0;
  std::uint64_t clock_ = 0;
  std::unique_ptr<Block> spare_;
  std::uintptr_t wanted_ = 0, wanted_end_ = 0;  // where the block being made has no pages; untracked: wanted_end_ is 0
  bool moves_ = true;                           // until the system refuses
};

}  // namespace reprise::internal::heap
