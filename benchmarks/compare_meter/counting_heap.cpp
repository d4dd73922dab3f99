// Counts the heap of a program that ./bench compare starts: put in front of it with LD_PRELOAD.
//
// Every allocation counts what malloc really gave for it. That is all of the heap, scratch memory of MKL and oneDNN
// and the interpreter's own large objects included; what a library maps for itself is not in it.
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<long long> live_bytes{0}, peak_bytes{0};

void* added(void* memory) {
  if (memory == nullptr) return memory;
  const auto bytes = static_cast<long long>(malloc_usable_size(memory));
  const long long now = live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  long long most = peak_bytes.load(std::memory_order_relaxed);
  while (now > most && !peak_bytes.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  return memory;
}

void subtract(long long bytes) {
  live_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace

extern "C" {

// The C library's own, under the names that stay when the others are replaced.
void* __libc_malloc(std::size_t);
void __libc_free(void*);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) noexcept {
  return added(__libc_malloc(bytes));
}

void free(void* memory) noexcept {
  if (memory == nullptr) return;
  subtract(static_cast<long long>(malloc_usable_size(memory)));
  __libc_free(memory);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return added(__libc_calloc(count, bytes));
}

void* realloc(void* memory, std::size_t bytes) noexcept {
  const auto before = memory == nullptr ? 0 : static_cast<long long>(malloc_usable_size(memory));
  void* const result = __libc_realloc(memory, bytes);
  if (result != nullptr || bytes == 0) subtract(before);  // otherwise it failed, and the old memory is still there
  return added(result);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return added(__libc_memalign(alignment, bytes));
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return added(__libc_memalign(alignment, bytes));
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  void* const result = __libc_memalign(alignment, bytes);
  if (result == nullptr) return ENOMEM;
  *memory = added(result);
  return 0;
}

// ---- for the program that is counted -------------------------------------------------------------------------------

long long reprise_heap_live() {
  return live_bytes.load(std::memory_order_relaxed);
}

// The most that was live since the last mark.
long long reprise_heap_peak() {
  return peak_bytes.load(std::memory_order_relaxed);
}

void reprise_heap_mark() {
  peak_bytes.store(live_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
}
}
