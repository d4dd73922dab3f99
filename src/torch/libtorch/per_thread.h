// Objects that each thread has for itself, and that are there for whoever asks. A thread_local of C++ is not: it is
// gone when later ones, or on the main thread global objects, are destroyed, and these may still use LibTorch.
#pragma once

#include <utility>

namespace reprise::internal {

// The one of this thread. It ends with the thread; who asks after that gets another one, which is never freed. `Tag`
// distinguishes objects of the same type.
template <class T, class Tag = T>
T& of_thread() {
  struct Slot {
    T* object = nullptr;
    bool over = false;
  };
  // Of types that need not be destroyed, so it is there as long as the thread is.
  static constinit thread_local Slot slot;
  if (!slot.object) [[unlikely]] {
    slot.object = new T;
    if (!slot.over) {
      struct End {
        ~End() {
          slot.over = true;
          delete std::exchange(slot.object, nullptr);
        }
      };
      static thread_local End end;
      (void)end;
    }
  }
  return *slot.object;
}

}  // namespace reprise::internal
