// Which devices and streams there are, and which of them are current on a thread.
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <utility>

#include "accelerator/device_streams.h"

namespace reprise::testing::accelerator {
namespace {

// Never destroyed: streams are used until the process ends.
struct Streams {
  std::mutex mutex;
  std::map<std::pair<c10::DeviceIndex, c10::StreamId>, DeviceStream*> by_name;
  c10::StreamId next = pool_size + 1;  // zero is the default stream; the pool comes after it
  std::uint64_t taken_from_pool = 0;

  static constexpr c10::StreamId pool_size = 4;
};
Streams& streams() {
  static auto& all = *new Streams;
  return all;
}

std::atomic<int> devices{0};
thread_local c10::DeviceIndex device_of_thread = 0;
thread_local std::array<c10::StreamId, most_devices> streams_of_thread{};

c10::Stream named(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(type, device), id);
}

}  // namespace

int device_count() {
  return devices.load();
}
c10::DeviceIndex current_device() {
  return device_of_thread;
}
c10::DeviceIndex exchange_device(c10::DeviceIndex device) {
  TORCH_CHECK(device >= 0 && device < device_count(), "[accelerator] there is no device ", static_cast<int>(device));
  return std::exchange(device_of_thread, device);
}

c10::Stream current_stream(c10::DeviceIndex device) {
  if (device < 0) device = current_device();
  return named(device, streams_of_thread.at(static_cast<std::size_t>(device)));
}
c10::Stream exchange_stream(c10::Stream stream) {
  auto& current = streams_of_thread.at(static_cast<std::size_t>(stream.device_index()));
  return named(stream.device_index(), std::exchange(current, stream.id()));
}

c10::Stream new_stream(c10::DeviceIndex device) {
  const std::lock_guard lock(streams().mutex);
  return named(device < 0 ? current_device() : device, streams().next++);
}
c10::Stream pooled_stream(c10::DeviceIndex device) {
  const std::lock_guard lock(streams().mutex);
  const auto turn = static_cast<c10::StreamId>(streams().taken_from_pool++ % Streams::pool_size);
  return named(device < 0 ? current_device() : device, turn + 1);
}

DeviceStream& stream_of(c10::Stream stream) {
  const std::lock_guard lock(streams().mutex);
  DeviceStream*& found = streams().by_name[{stream.device_index(), stream.id()}];
  if (!found) found = new DeviceStream(stream);
  return *found;
}

std::vector<DeviceStream*> all_streams() {
  const std::lock_guard lock(streams().mutex);
  std::vector<DeviceStream*> all;
  for (const auto& [name, stream] : streams().by_name) all.push_back(stream);
  return all;
}

void start_streams(int number) {
  devices = number;
  // Kernels that still run when LibTorch's globals are destroyed would find nothing there.
  std::atexit([] {
    for (DeviceStream* stream : all_streams()) stream->close();
  });
}

}  // namespace reprise::testing::accelerator
