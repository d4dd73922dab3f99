#include "accelerator/device_streams.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "accelerator/kernel_rules.h"

namespace reprise::testing::accelerator {
namespace {

// The time at which the host is: that of the latest thing it waited for.
std::atomic<Time::rep> host_time{0};
void host_saw(Time time) {
  Time::rep before = host_time.load();
  while (before < time.count() && !host_time.compare_exchange_weak(before, time.count())) {
  }
}

// What the processor has done for this thread.
Time time_of_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Time(time.tv_nsec);
}

thread_local bool of_a_stream = false;

// A host that is further ahead waits, as that of other devices does: a thread that launches all the time would fill the
// queue, and those who wait for their kernels behind it would wait ever longer.
constexpr std::size_t most_kernels_ahead = 1024;

class NoWarnings final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

bool is_stream_thread() {
  return of_a_stream;
}

// ---- a stream ----

void Mark::reach(Time time) {
  const std::lock_guard lock(mutex_);
  time_ = time;
  changed_.notify_all();
}

bool Mark::reached() const {
  const std::lock_guard lock(mutex_);
  return time_.has_value();
}

Time Mark::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return time_.has_value(); });
  return *time_;
}

DeviceStream::DeviceStream(c10::Stream name) : id(name) {
  std::thread([this] { work(); }).detach();  // for as long as the process
}

void DeviceStream::launch(const Kernel& kernel, std::function<void()> work) {
  const KernelRule rule = next_kernel(kernel);
  const Time earliest{host_time.load()};
  Task task = [=, name = kernel.name, work = std::move(work)](Time& clock) {
    if (const auto later = delay_of_kernels(); later.count() > 0) std::this_thread::sleep_for(later);
    const Time begin = time_of_thread();
    TORCH_CHECK(!rule.fails, "[accelerator] the kernel ", name, " failed");
    work();
    const Time took = time_of_thread() - begin;
    clock = std::max(clock, earliest) + rule.duration.value_or(took);
  };
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || holds_ > 0 || tasks_.size() < most_kernels_ahead; });
  TORCH_CHECK(!closed_, "[accelerator] stream ", id.id(), " was destroyed; ", kernel.name, " cannot be launched on it");
  tasks_.push_back(std::move(task));
  ++last_;
  changed_.notify_all();
  // Kernels of this device ask for the default type when they run. Nobody waits who leaves it as it is.
  if (c10::get_default_dtype_as_scalartype() != at::kFloat && holds_ == 0) wait_for(lock, last_);
}

DeviceStream::Ticket DeviceStream::enqueue(Task work) {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    work(clock_);
  } else {
    tasks_.push_back(std::move(work));
    ++last_;
    changed_.notify_all();
  }
  return last_;
}

void DeviceStream::work() {
  // Kernels are LibTorch's below autograd, and nobody's business but the device's.
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::impl::ExcludeDispatchKeyGuard no_cast(c10::autocast_dispatch_keyset);
  const at::RecordFunctionGuard unseen(false);
  static auto& silent = *new NoWarnings;  // what the program is warned of, it is warned of by the host
  const c10::WarningUtils::WarningHandlerGuard no_warnings(&silent);
  exchange_device(id.device_index());
  of_a_stream = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    // Also once it is closed, when nothing comes any more: a thread that ends while the process does would destroy what
    // LibTorch keeps for it beside what LibTorch keeps for all.
    changed_.wait(lock, [&] { return !tasks_.empty() && holds_ == 0; });
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    Time clock = clock_;
    lock.unlock();
    std::exception_ptr error;
    try {
      task(clock);
    } catch (...) {
      error = std::current_exception();
    }
    task = nullptr;  // what it held is gone before it counts as finished
    lock.lock();
    if (error && !error_) error_ = error;
    clock_ = clock;
    ++finished_;
    changed_.notify_all();
  }
}

DeviceStream::Ticket DeviceStream::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

bool DeviceStream::done(Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  return finished_ >= ticket;
}

void DeviceStream::wait_for(std::unique_lock<std::mutex>& lock, Ticket ticket) {
  TORCH_CHECK(holds_ == 0 || finished_ >= ticket, "[accelerator] stream ", id.id(),
              " is held: it would be waited for forever");
  changed_.wait(lock, [&] { return finished_ >= ticket; });
  host_saw(clock_);
}

void DeviceStream::wait(const std::string& who) {
  count_wait(who);
  std::unique_lock lock(mutex_);
  wait_for(lock, last_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void DeviceStream::settle() {
  std::unique_lock lock(mutex_);
  wait_for(lock, last_);
}

void DeviceStream::hold() {
  const std::lock_guard lock(mutex_);
  ++holds_;
}

void DeviceStream::release() {
  const std::lock_guard lock(mutex_);
  --holds_;
  changed_.notify_all();
}

void DeviceStream::close() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_ == last_; });
  closed_ = true;
  changed_.notify_all();
}

// ---- events ----

std::shared_ptr<Mark> record_mark(DeviceStream& stream) {
  auto mark = std::make_shared<Mark>();
  stream.enqueue([mark, earliest = Time(host_time.load())](Time& clock) {
    clock = std::max(clock, earliest);
    mark->reach(clock);
  });
  return mark;
}

void wait_for_mark(DeviceStream& stream, std::shared_ptr<Mark> mark) {
  stream.enqueue([mark = std::move(mark)](Time& clock) { clock = std::max(clock, mark->wait()); });
}

void wait_for_mark(const Mark& mark, const std::string& who) {
  count_wait(who);
  host_saw(mark.wait());
}

// ---- for tests ----

void synchronize() {
  // First all, so that what one of them throws does not leave others at work.
  for (DeviceStream* stream : all_streams()) stream->settle();
  for (DeviceStream* stream : all_streams()) stream->wait("synchronize");
}

Held::Held(c10::Stream stream) : stream_(stream) {
  stream_of(stream_).hold();
}
Held::~Held() {
  stream_of(stream_).release();
}

void destroy(c10::Stream stream) {
  stream_of(stream).close();
}

}  // namespace reprise::testing::accelerator
