// The lock of what is known about places where checkpoint() and checkpoint_sequential() are called, of all threads.
#pragma once

#include <mutex>

namespace reprise::internal {

// Held for short, and at a fork. Its place among other locks: arbiter.h.
inline constinit std::mutex checkpoint_places_mutex;

}  // namespace reprise::internal
