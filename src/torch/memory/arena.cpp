#include "torch/memory/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

namespace reprise::internal::heap {
namespace {

using State = Block::State;

std::uintptr_t up(std::uintptr_t address, std::size_t unit) {
  return (address + unit - 1) & ~(unit - 1);
}
std::uintptr_t down(std::uintptr_t address, std::size_t unit) {
  return address & ~(unit - 1);
}

bool is(const Block* block, State state) {
  return block != nullptr && block->state == state;
}

// Addresses; only what is touched becomes memory.
void* map(void* where, std::size_t bytes, int flags) {
  return mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

}  // namespace

bool BySize::operator()(const Block* one, const Block* two) const {
  return std::pair(one->bytes, one->first()) < std::pair(two->bytes, two->first());
}
bool BySize::operator()(const Block* one, std::size_t bytes) const {
  return one->bytes < bytes;
}

// ---- what is asked for ---------------------------------------------------------------------------------------------

Arena::Arena() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {}

Arena::~Arena() {
  for (const Region& region : regions_) {
    for (Block* block = region.blocks; block != nullptr;) delete std::exchange(block, block->after);
    if (region.blocks != nullptr) munmap(reinterpret_cast<void*>(region.first), region.end - region.first);
  }
}

Block* Arena::allocate(std::size_t bytes, Bytes cache) {
  if (!have_spare()) return nullptr;
  const auto fit = cached_.lower_bound(bytes);
  const bool resident = fit != cached_.end();
  Block* const block = resident ? taken(*fit) : made_of_empty(bytes);
  if (block == nullptr) return nullptr;
  cut(block, bytes);
  block->state = State::used;
  if (!resident) {
    shrink(cache);
    wanted_ = wanted_end_ = 0;
  }
  return block;
}

void Arena::release(Block* block) {
  block->state = State::cached;
  block->freed = ++clock_;
  put(merged(block));
}

void Arena::shrink(Bytes cache) {
  cache = std::max<Bytes>(cache, 0);
  while (cached_bytes_ > cache) {
    const auto older = [](const Block* one, const Block* two) { return one->freed < two->freed; };
    Block* const oldest = *std::min_element(cached_.begin(), cached_.end(), older);
    drop(oldest, static_cast<std::size_t>(cached_bytes_ - cache));
  }
}

std::uintptr_t Arena::offer(std::uintptr_t from, std::size_t bytes) {
  const Block* next = nullptr;
  for (const Block* const block : cached_) {
    if (block->end() > from && (next == nullptr || block->first() < next->first())) next = block;
  }
  if (next == nullptr) return 0;
  const std::uintptr_t first = std::max(from, next->first()), end = std::min(first + bytes, next->end());
  const std::uintptr_t first_page = up(first, page_), end_page = down(end, page_);
  if (first_page < end_page) madvise(reinterpret_cast<void*>(first_page), end_page - first_page, MADV_FREE);
  return end;
}

// ---- blocks --------------------------------------------------------------------------------------------------------

Shelf& Arena::shelf(State state) {
  return state == State::cached ? cached_ : empty_;
}

void Arena::put(Block* block) {
  if (block->state == State::cached) cached_bytes_ += static_cast<Bytes>(block->bytes);
  block->place.value() = block;
  shelf(block->state).insert(std::move(block->place));
}

Block* Arena::taken(Block* block) {
  if (block->state == State::cached) cached_bytes_ -= static_cast<Bytes>(block->bytes);
  block->place = shelf(block->state).extract(block);
  return block;
}

// A block for the next cut. The system may refuse it, so it is made before anything is changed.
bool Arena::have_spare() {
  if (spare_ != nullptr) return true;
  try {
    auto block = std::make_unique<Block>();
    Shelf shelf{block.get()};
    block->place = shelf.extract(shelf.begin());
    spare_ = std::move(block);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// What is behind the first bytes of a taken block becomes a block of its own.
void Arena::cut(Block* block, std::size_t bytes) {
  if (block->bytes == bytes) return;
  Block* const rest = spare_.release();
  rest->start = block->start + bytes;
  rest->bytes = block->bytes - bytes;
  rest->state = block->state;
  rest->freed = block->freed;
  rest->before = block;
  rest->after = std::exchange(block->after, rest);
  if (rest->after != nullptr) rest->after->before = rest;
  block->bytes = bytes;
  put(rest);
}

// The block behind a taken one, taken too, becomes a part of it.
void Arena::absorb_after(Block* block) {
  Block* const after = block->after;
  block->bytes += after->bytes;
  block->after = after->after;
  if (block->after != nullptr) block->after->before = block;
  spare_.reset(after);
}

// One block of a taken one and its neighbours of the same state.
Block* Arena::merged(Block* block) {
  if (is(block->after, block->state)) {
    taken(block->after);
    absorb_after(block);
  }
  if (!is(block->before, block->state)) return block;
  Block* const before = taken(block->before);
  before->freed = block->freed;
  absorb_after(before);
  return before;
}

// Returns a taken block of at least this many bytes, of an empty one and its cached neighbours, where it puts the most
// cached bytes to use: each of them alone is too small. Its state is that of what a cut will leave over.
Block* Arena::made_of_empty(std::size_t bytes) {
  Block* best = nullptr;
  std::size_t best_used = 0;
  for (Block* const block : empty_) {
    const std::size_t before = is(block->before, State::cached) ? block->before->bytes : 0;
    const std::size_t after = is(block->after, State::cached) ? block->after->bytes : 0;
    const std::size_t without_after = before + block->bytes;
    if (without_after + after < bytes) continue;
    const std::size_t used = before + (without_after < bytes ? bytes - without_after : 0);
    if (best != nullptr && used <= best_used) continue;
    best = block;
    best_used = used;
  }
  if (best == nullptr) best = new_region(bytes);
  if (best == nullptr) return nullptr;

  taken(best);
  wanted_ = best->first();
  wanted_end_ = best->end();
  if (is(best->before, State::cached)) {
    best = taken(best->before);
    absorb_after(best);
    best->state = State::empty;
  }
  wanted_end_ = std::min(wanted_end_, best->first() + bytes);
  if (best->bytes < bytes) {
    best->freed = taken(best->after)->freed;
    absorb_after(best);
    best->state = State::cached;
  }
  return best;
}

// ---- addresses and pages -------------------------------------------------------------------------------------------

Block* Arena::new_region(std::size_t bytes) {
  constexpr std::size_t smallest = std::size_t{1} << 30, chunks = 4096;
  std::size_t size = std::max(smallest, std::bit_ceil(bytes));
  for (std::size_t i = 0; i < region_count_; ++i) size = std::max(size, 2 * (regions_[i].end - regions_[i].first));
  if (region_count_ == regions_.size()) return nullptr;
  void* start = map(nullptr, size, 0);
  if (start == MAP_FAILED) start = map(nullptr, size = up(bytes, page_), 0);
  if (start == MAP_FAILED) return nullptr;

  Block* const block = spare_.release();
  block->start = static_cast<char*>(start);
  block->bytes = size;
  block->state = State::empty;
  block->before = block->after = nullptr;
  put(block);
  regions_[region_count_++] = {block, block->first(), block->end(), std::max(page_, std::bit_floor(size / chunks))};
  return have_spare() ? block : nullptr;
}

const Arena::Region& Arena::region_of(std::uintptr_t address) const {
  return *std::find_if(regions_.begin(), regions_.end(),
                       [=](const Region& region) { return region.first <= address && address < region.end; });
}

// Makes this many bytes of a cached block empty, or all of it.
void Arena::drop(Block* block, std::size_t bytes) {
  taken(block);
  const std::size_t enough = up(bytes, page_) + page_;  // to have that many bytes in whole pages
  if (enough < block->bytes && have_spare()) cut(block, enough);
  const std::uintptr_t first = down(block->first(), page_), end = up(block->end(), page_);
  block->state = State::empty;
  block = merged(block);  // the pages it shares with empty neighbours can go now, those it shares with others cannot
  remove_pages(std::max(first, up(block->first(), page_)), std::min(end, down(block->end(), page_)));
  put(block);
}

// Whole chunks go to where pages are wanted, the rest goes back to the system.
void Arena::remove_pages(std::uintptr_t first, std::uintptr_t end) {
  if (first >= end) return;
  const Region& region = region_of(first);
  if (moves_ && region.first <= wanted_ && wanted_ < region.end) {
    std::uintptr_t from = up(first, region.chunk);
    wanted_ = up(wanted_, region.chunk);
    while (from + region.chunk <= end && wanted_ + region.chunk <= wanted_end_) {
      if (!move_pages(from, wanted_, region.chunk)) break;
      from += region.chunk;
      wanted_ += region.chunk;
    }
  }
  madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

// The addresses they leave stay mapped, without pages.
bool Arena::move_pages(std::uintptr_t from, std::uintptr_t to, std::size_t bytes) {
  void* const source = reinterpret_cast<void*>(from);
  void* const target = reinterpret_cast<void*>(to);
  constexpr int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (mremap(source, bytes, bytes, how, target) != MAP_FAILED) return true;
  moves_ = false;
  // What was mapped there may be gone already. If it cannot be put back, a tensor would lie where nothing is.
  if (map(target, bytes, MAP_FIXED) == MAP_FAILED) std::abort();
  return false;
}

}  // namespace reprise::internal::heap
