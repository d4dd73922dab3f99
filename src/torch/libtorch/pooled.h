// Objects of one type that come and go with every operator: a thread keeps the memory of some that are gone for those
// to come, which is several times quicker than malloc where thousands of them live at a time.
#pragma once

#include <cstddef>
#include <new>

#include "torch/libtorch/per_thread.h"

namespace reprise::internal {

// A base of T, which nothing else derives from. `most`: how many each thread keeps.
template <class T, std::size_t most>
class Pooled {
 public:
  static void* operator new(std::size_t bytes) {
    Kept& kept = of_thread<Kept>();
    Block* const block = kept.first;
    if (!block) return ::operator new(bytes);
    kept.first = block->next;
    --kept.count;
    return block;
  }
  static void operator delete(void* memory) noexcept {
    Kept& kept = of_thread<Kept>();
    if (kept.count == limit) return ::operator delete(memory);
    kept.first = new (memory) Block{kept.first};
    ++kept.count;
  }

 private:
#ifdef REPRISE_SANITIZED
  static constexpr std::size_t limit = 0;  // what is used after it was freed is seen
#else
  static constexpr std::size_t limit = most;
#endif
  struct Block {
    Block* next;
  };
  struct Kept {
    Block* first = nullptr;
    std::size_t count = 0;
    ~Kept() {
      while (Block* const block = first) {
        first = block->next;
        ::operator delete(block);
      }
    }
  };
};

}  // namespace reprise::internal
