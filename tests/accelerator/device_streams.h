// Streams and events of the simulated accelerator: threads with queues, each with a clock. Knows nothing of tensors.
#pragma once

#include <c10/core/Stream.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "accelerator/accelerator.h"

namespace reprise::testing::accelerator {

using Time = std::chrono::nanoseconds;  // on the clocks of streams

// A point in what a stream does, that others can wait for. Recording an event anew makes a new one.
class Mark {
 public:
  void reach(Time);
  [[nodiscard]] bool reached() const;
  Time wait() const;  // returns the time of the stream when it was reached

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Time> time_;
};

class DeviceStream {
 public:
  using Task = std::function<void(Time& clock)>;
  using Ticket = std::uint64_t;  // the number of a task, in the order of the stream

  explicit DeviceStream(c10::Stream id);
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  // A kernel: takes time, can be made to fail, and is refused once the stream is closed.
  void launch(const Kernel&, std::function<void()> work);
  // What the stream does besides, in no time; it may set the clock forward. If the stream is closed it is done at once.
  Ticket enqueue(Task);

  [[nodiscard]] Ticket last() const;  // of what was launched or enqueued so far
  [[nodiscard]] bool done(Ticket) const;
  // Waits for what there is so far. `wait` throws the first thing that a kernel threw since the last time.
  void wait(const std::string& who);
  void settle();

  void hold();
  void release();
  void close();  // after what there is

  const c10::Stream id;

 private:
  void work();
  void wait_for(std::unique_lock<std::mutex>&, Ticket);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  Ticket last_ = 0, finished_ = 0;
  int holds_ = 0;
  bool closed_ = false;
  Time clock_{0};  // when a task is over
  std::exception_ptr error_;
};

// Whether this thread is one of a stream's: a kernel is running.
bool is_stream_thread();

// ---- which streams there are ----

int device_count();
c10::DeviceIndex current_device();
c10::DeviceIndex exchange_device(c10::DeviceIndex);
c10::Stream current_stream(c10::DeviceIndex = -1);  // of this thread; -1: the current device
c10::Stream exchange_stream(c10::Stream);
c10::Stream new_stream(c10::DeviceIndex);
c10::Stream pooled_stream(c10::DeviceIndex);  // one of a few, in turn

// By its name. It is never destroyed, at most closed.
DeviceStream& stream_of(c10::Stream);
std::vector<DeviceStream*> all_streams();

// ---- events ----

// The stream reaches the mark after what there is so far, or waits for it before what comes.
std::shared_ptr<Mark> record_mark(DeviceStream&);
void wait_for_mark(DeviceStream&, std::shared_ptr<Mark>);
// The host waits.
void wait_for_mark(const Mark&, const std::string& who);

void start_streams(int devices);

}  // namespace reprise::testing::accelerator
