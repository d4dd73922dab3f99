#include "torch/memory/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "torch/memory/arena.h"
#include "torch/memory/shared_pages.h"

namespace reprise::internal::heap {
namespace {

// Never destroyed: tensors are freed after main too.
constinit std::atomic<Arena*> kept{nullptr};
constinit std::atomic<SharedPages*> shared{nullptr};
constinit std::mutex mutex;  // of both

thread_local std::size_t own_up_to = 0;  // bytes, where pages are shared

Arena* arena() {
  return kept.load(std::memory_order_acquire);
}

}  // namespace

Piece allocate(std::size_t bytes, Bytes cache) {
  if (SharedPages* const pages = shared.load(std::memory_order_acquire); pages && bytes >= large && bytes > own_up_to)
      [[unlikely]] {
    const std::lock_guard lock(mutex);
    return {pages->allocate(bytes), nullptr, nullptr};
  }
  if (bytes >= large && arena() != nullptr) {
    const std::lock_guard lock(mutex);
    if (Block* const block = arena()->allocate(bytes, cache)) return {block->start, nullptr, block};
  }
  // aligned_alloc would do the same several times slower, with holes between the blocks.
  constexpr std::uintptr_t alignment = 64, malloc_alignment = 16;
  void* const start = std::malloc(bytes + alignment - malloc_alignment);
  if (start == nullptr) return {};
  const std::uintptr_t aligned = (reinterpret_cast<std::uintptr_t>(start) + alignment - 1) & ~(alignment - 1);
  return {reinterpret_cast<void*>(aligned), start, nullptr};
}

void release(const Piece& piece) {
  if (piece.block == nullptr && piece.malloced == nullptr) [[unlikely]] {
    const std::lock_guard lock(mutex);
    return shared.load(std::memory_order_acquire)->release(piece.memory);
  }
  if (piece.block == nullptr) return std::free(piece.malloced);
  const std::lock_guard lock(mutex);
  arena()->release(piece.block);
}

void keep() {
#if !defined(REPRISE_SANITIZED) || defined(__SANITIZE_THREAD__)
  static std::once_flag once;
  std::call_once(once, [] {
    // What malloc's own rules arrive at once large blocks were freed, from the start: it does not give memory back
    // to the system in every step.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    kept.store(new Arena, std::memory_order_release);
  });
#endif
}

bool keeping() {
  return arena() != nullptr;
}

void shrink(Bytes cache) {
  if (arena() == nullptr) return;
  const std::lock_guard lock(mutex);
  arena()->shrink(cache);
}

void give_back() {
  shrink(0);
  malloc_trim(0);
}

void offer(const std::atomic<bool>& stop) {
  if (arena() == nullptr) return;
  constexpr std::size_t at_once = 16 << 20;  // so the lock is never waited for long
  for (std::uintptr_t from = 0; !stop;) {
    const std::lock_guard lock(mutex);
    from = arena()->offer(from, at_once);
    if (from == 0) return;
  }
}

std::uint64_t freed() {
  if (arena() == nullptr) return 0;
  const std::lock_guard lock(mutex);
  return arena()->freed();
}

Bytes cached() {
  if (arena() == nullptr) return 0;
  const std::lock_guard lock(mutex);
  return arena()->cached();
}

void share_pages() {
  constexpr std::size_t window = 256 << 20;
  shared.store(new SharedPages(window), std::memory_order_release);
}

void own_pages_up_to(std::size_t bytes) {
  own_up_to = bytes;
}

bool is_shared(const void* memory) {
  const SharedPages* const pages = shared.load(std::memory_order_acquire);
  const std::lock_guard lock(mutex);
  return pages && pages->has(memory);
}

void clear(void* memory) {
  SharedPages* const pages = shared.load(std::memory_order_acquire);
  const std::lock_guard lock(mutex);
  if (pages && !pages->clear(memory)) throw std::bad_alloc();
}

void lock_for_fork() {
  mutex.lock();
}
void unlock_after_fork() {
  mutex.unlock();
}

Bytes resident() {
  Bytes pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace reprise::internal::heap
