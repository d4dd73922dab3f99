// Objects that each thread has for itself, and that are there for whoever asks. A thread_local of C++ is not: it is
// gone when later ones, or on the main thread global objects, are destroyed, and these may still use LibTorch.
#pragma once

#include <utility>

namespace reprise::internal {

// The one of this thread. It ends with the thread; who asks after that gets another one, which is never freed. `Tag`
// tells apart objects of the same type.
template <class T, class Tag = T>
T& of_thread() {
  struct Place {
    T* object = nullptr;
    bool over = false;
  };
  // Of types that need not be destroyed, so it is there as long as the thread is.
  static constinit thread_local Place place;
  if (!place.object) [[unlikely]] {
    place.object = new T;
    if (!place.over) {
      struct End {
        ~End() {
          place.over = true;
          delete std::exchange(place.object, nullptr);
        }
      };
      static thread_local End end;
      (void)end;
    }
  }
  return *place.object;
}

}  // namespace reprise::internal
