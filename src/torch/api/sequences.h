// The lock of what is known about sequences of modules (checkpoint_sequential), of all threads.
#pragma once

#include <mutex>

namespace reprise::internal {

// Held for short, and at a fork. Its place among other locks: arbiter.h.
inline constinit std::mutex sequences_mutex;

}  // namespace reprise::internal
