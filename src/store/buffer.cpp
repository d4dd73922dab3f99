#include "store/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace reprise::internal {
namespace {

void report(Bytes change) {
  if (const auto observer = buffer_observer.load(std::memory_order_relaxed)) observer(change);
}

}  // namespace

// malloc, because what it gives can be made smaller where it is.
Buffer::Buffer(Reservation reserved) : room(std::move(reserved)) {
  report(room.bytes());
  memory_ = static_cast<std::byte*>(std::malloc(std::max<std::size_t>(1, static_cast<std::size_t>(room.bytes()))));
  if (!memory_) {
    report(-room.bytes());
    throw std::bad_alloc();
  }
  room.hold();
}

Buffer::Buffer(Buffer&& other) noexcept : room(std::move(other.room)), memory_(std::exchange(other.memory_, nullptr)) {}

Buffer::~Buffer() {
  (void)release();
}

void Buffer::shrink(Bytes bytes) {
  if (bytes >= room.bytes()) return;
  // If that fails, the memory stays as large as it is, and so does what is reserved.
  void* smaller = std::realloc(memory_, std::max<std::size_t>(1, static_cast<std::size_t>(bytes)));
  if (!smaller) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(smaller);
  report(bytes - room.bytes());
  room.shrink(bytes);
}

ArrayMemory Buffer::take_memory() {
  ArrayMemory memory(std::exchange(memory_, nullptr));
  report(-room.bytes());
  const Reservation over = std::move(room);
  return memory;
}

Reservation Buffer::release() {
  if (memory_) {
    std::free(std::exchange(memory_, nullptr));
    report(-room.bytes());
  }
  return std::move(room);
}

}  // namespace reprise::internal
