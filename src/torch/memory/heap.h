// The heap: the memory behind the meter.
//
// Small requests are malloc's. Large ones go to the arena (arena.h) from the moment that a session asks to keep memory:
// then what is freed stays resident and serves later requests, as much as the caller says it can afford.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "reprise/trace/trace.h"

namespace reprise::internal::heap {

struct Block;

// Memory, 64 byte aligned, and where it came from. A null `memory`: the system has none left.
struct Piece {
  void* memory = nullptr;
  void* malloced = nullptr;  // malloc's: the start of its block
  Block* block = nullptr;    // the arena's
  // Neither: its pages are shared, see below.
};

// The smallest request that is large. Smaller ones would fill the arena with pieces that keep whole pages resident; but
// what malloc has once had for tensors stays resident beside the arena.
inline constexpr std::size_t large = 16 << 10;

// `cache`: how much freed memory may stay resident beside all that is in use, this request included.
[[nodiscard]] Piece allocate(std::size_t bytes, Bytes cache);
void release(const Piece&);

// Makes the arena. Until then everything is malloc's, as if this file were not there; in a build with the address
// sanitizer it stays so, and what is used after it was freed is seen.
void keep();
[[nodiscard]] bool keeping();

// Returns freed memory that is still resident in the arena to the system, longest freed first, until `cache` is left.
void shrink(Bytes cache);
// Returns all of it, and that of malloc.
void give_back();

// Lets the system take freed memory of the arena if it needs some; until then it stays as it is. Takes a tenth of a
// second for each GiB, unless it is stopped.
void offer(const std::atomic<bool>& stop);

// Returns how much freed memory is still resident in the arena.
[[nodiscard]] Bytes cached();
// Returns how many pieces of the arena were freed since the start.
[[nodiscard]] std::uint64_t freed();
// Returns all that is resident in this process, as the system sees it.
[[nodiscard]] Bytes resident();

// Serves all large requests from now on with pages that they share (shared_pages.h), and nothing is kept that is
// written into them. For a process in which a step is only measured, and never undone. Throws Error.
void share_pages();
// Gives pieces of this thread that are not larger pages of their own all the same.
void own_pages_up_to(std::size_t bytes);
[[nodiscard]] bool is_shared(const void* memory);
// Gives such a piece pages of its own, with zeros. Without effect on others.
void clear(void* memory);

// Hold the lock of the arena during fork(), which copies only the thread that calls it.
void lock_for_fork();
void unlock_after_fork();

}  // namespace reprise::internal::heap
