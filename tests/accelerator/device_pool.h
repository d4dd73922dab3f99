// The blocks of one device of the simulated accelerator: which are handed out, which wait for a stream, which are
// cached.
//
// A block belongs to the stream that was current when it was allocated. When it is freed it is poisoned there and is
// free for that stream at once, because whatever that stream does with it comes later. A block that other streams use
// waits until they are done with what was launched on them by then.
//
// Memory comes from the device in segments. Blocks split them if segments are larger than what is asked for, and join
// their free neighbours again; only a segment that is free as a whole goes back.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "accelerator/device_memory.h"
#include "accelerator/device_streams.h"

namespace reprise::testing::accelerator {

// Of LibTorch's statistics, which have large and small blocks apart, too: those of both.
inline constexpr auto every_kind = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

class DevicePool {
 public:
  explicit DevicePool(c10::DeviceIndex);

  // nullptr: the device is full. Before that it waits for its streams and gives back what is cached.
  void* allocate(std::size_t bytes, DeviceStream&);
  void free(void*);
  void used_by(void*, DeviceStream&);
  void empty_cache();

  using Stats = c10::CachingDeviceAllocator::DeviceStats;
  [[nodiscard]] Stats stats() const;
  void reset_peaks();
  void reset_accumulated();

  [[nodiscard]] std::size_t capacity() const;
  void capacity(std::size_t);
  void segments_of(std::size_t bytes);

 private:
  enum class State { live, waiting, cached };
  struct Block {
    char* at = nullptr;
    std::size_t bytes = 0;
    DeviceStream* stream = nullptr;
    State state = State::live;
    std::vector<DeviceStream*> users;                                       // other streams
    std::vector<std::pair<DeviceStream*, DeviceStream::Ticket>> waits_for;  // while it waits
    DeviceStream::Ticket poisoned = 0;                                      // while it is cached
    char* segment = nullptr;                                                // where that begins
  };
  using Blocks = std::map<char*, Block>;  // by address: neighbours are neighbours

  char* take(std::size_t bytes, DeviceStream&);
  char* new_segment(std::size_t bytes);
  void split(Block&, std::size_t bytes);
  void cache(Block&);
  void join(Block& first, Block& second);
  void collect_waiting();
  void give_back_cached();
  void poison_in_order(Block&);

  mutable std::mutex mutex_;
  const Addresses addresses_;
  char* fresh_;                                  // addresses that were never used begin here
  std::multimap<std::size_t, char*> abandoned_;  // segments without pages, by size
  Blocks blocks_;
  std::set<std::tuple<DeviceStream*, std::size_t, char*>> cached_;  // by stream and size
  std::vector<char*> waiting_;
  std::size_t capacity_, segment_ = 0;
  Stats stats_;
};

DevicePool& pool_of(c10::DeviceIndex);

}  // namespace reprise::testing::accelerator
