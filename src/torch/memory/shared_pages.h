// Shared pages: memory of any size that is all the same few pages, for tensors whose contents do not matter.
//
// A window of physical memory is mapped over and over into the addresses of every piece. Kernels run on it as on any
// other memory, and what they write is overwritten by others. For a process in which a step is only measured.
#pragma once

#include <cstddef>
#include <unordered_map>

namespace reprise::internal {

class SharedPages {
 public:
  // Throws Error if the system has no room for the window.
  explicit SharedPages(std::size_t window);
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  // The bytes in front, for a header, that are a piece's own; behind them it begins with a page.
  static constexpr std::size_t own = 64;

  // Returns a piece of this many bytes, its own ones included. Null if the system has no addresses left.
  [[nodiscard]] void* allocate(std::size_t bytes);
  void release(void* piece);

  [[nodiscard]] bool has(const void* piece) const { return ranges_.contains(piece); }

  // Gives the piece pages of its own, which are zero and take no memory until they are written. Without effect the
  // second time. False: the system refuses.
  bool clear(void* piece);

 private:
  struct PageRange {
    std::byte* start = nullptr;
    std::size_t bytes = 0;  // with the page in front
    bool cleared = false;
  };
  [[nodiscard]] std::byte* map(std::size_t bytes);
  [[nodiscard]] bool map_window(std::byte* start, std::size_t bytes);

  const std::size_t page_, window_;
  int file_ = -1;  // the window; never closed
  // Where in the window the next piece begins. So what one operator allocates is apart, as long as the window suffices:
  // some keep addresses in memory of this kind while they run.
  std::size_t priority_ = 0;
  std::unordered_map<const void*, PageRange> ranges_;
};

}  // namespace reprise::internal
