#include "torch/offload/host_memory.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <new>
#include <utility>

#include "reprise/torch/errors.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/arbiter.h"
#include "torch/offload/value_tiers.h"

namespace reprise::internal {
namespace {

c10::Stream another_stream(c10::Device device, std::optional<c10::Stream> than = std::nullopt) {
  constexpr int tries = 8;
  const c10::impl::VirtualGuardImpl guard(device.type());
  c10::Stream stream = guard.getStreamFromGlobalPool(device);
  for (int i = 0; i < tries && (stream == than || stream == guard.getStream(device)); ++i) {
    stream = guard.getStreamFromGlobalPool(device);
  }
  return stream;
}

bool is_over(const std::shared_ptr<CopySpan>& span) {
  return !span || span->to.query();
}

}  // namespace

void HostTotals::tell(Summary& summary, const HostTotals& before) const {
  summary.host_put_last_step = put - before.put;
  summary.host_got_last_step = got - before.got;
  summary.host_peak = peak;
}

// ---- the memory ----------------------------------------------------------------------------------------------------

std::shared_ptr<HostMemory> HostMemory::open(Bytes bytes, const CountedDevice& device, bool in_cpu) {
  std::shared_ptr<HostMemory> host(new HostMemory(bytes, device, in_cpu));
  try {
    host->measure();
  } catch (const BudgetError&) {  // of a step that is open: what is guessed will do until values go there
  } catch (const c10::Error& error) {
    throw BadOption("[session] option host: " + device.name() +
                    " cannot copy to pinned memory of the host: " + error.what_without_backtrace());
  }
  ValueTiers::of_process().add(host);
  return host;
}

HostMemory::HostMemory(Bytes bytes, const CountedDevice& device, bool in_cpu)
    : device_(device),
      in_cpu_(in_cpu),
      puts_(another_stream(device.device())),
      gets_(another_stream(device.device(), puts_)) {
  constexpr Bytes least = 512;  // what accelerators give at least
  terms_.name = "host";
  terms_.capacity = bytes;
  terms_.duplex = true;
  terms_.least = least;
  terms_.put.time = terms_.get.time = put_time_.line();  // a guess
}

HostMemory::~HostMemory() {
  try {
    settle_all();
  } catch (const std::exception&) {  // of a kernel that failed: who waits for the device is told
  }
  for (const Transfer& transfer : left_) {
    if (transfer->there) give_room_back(static_cast<Bytes>(transfer->bytes));
  }
}

// What a copy takes shows with small ones, what a byte takes with large ones.
void HostMemory::measure() {
  constexpr std::size_t sizes[] = {16 << 10, 1 << 20};
  constexpr int times = 4;
  for (int i = -1; i < times; ++i) {
    for (const std::size_t wanted : sizes) {
      const std::size_t bytes = std::min(wanted, static_cast<std::size_t>(*terms_.capacity));
      const c10::Storage far = libtorch::new_storage(bytes, device_.device());
      const c10::Storage near = room_for(bytes);
      if (!near) return;
      const auto put = copy(near, far, puts_, here());
      const auto get = copy(far, near, gets_, here(), put.get());
      get->to.synchronize();
      give_room_back(static_cast<Bytes>(bytes));
      if (i < 0) continue;  // the first ones take longer
      measured_.push_back({put, bytes, true});
      measured_.push_back({get, bytes, false});
      learn();
    }
  }
  totals_ = {};
}

c10::Stream HostMemory::here() const {
  return libtorch::current_stream_of_accelerator(device_.device());
}

TierTerms HostMemory::terms() const {
  const std::lock_guard lock(mutex_);
  return terms_;
}

HostTotals HostMemory::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

void HostMemory::unlock_in_child() {
  new (&changed_) std::condition_variable;  // not destroyed before: that would wait for those who waited on it
  mutex_.unlock();
}

// ---- what leaves ---------------------------------------------------------------------------------------------------

void HostMemory::leave(Transfer transfer) {
  transfer->left = true;
  give_up_fetched(*transfer);
  if (transfer->state != State::putting) give_up_put(*transfer);  // else whoever is at it does so
  left_.push_back(std::move(transfer));
}

void HostMemory::give_up_put(HostTransfer& transfer) {
  if (transfer.state == State::to_put) transfer.state = State::lost;
  if (!transfer.from) return;
  given_up_.push_back({std::exchange(transfer.from, c10::Storage()), transfer.made_on, transfer.put});
}

bool HostMemory::give_up_fetched(HostTransfer& transfer) {
  if (!transfer.got) return false;
  given_up_.push_back({std::exchange(transfer.got, c10::Storage()), transfer.got_for, transfer.get});
  return true;
}

bool HostMemory::give_up_fetched() {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (const auto& one : fetched_) {
    if (const Transfer transfer = one.lock()) any |= give_up_fetched(*transfer);
  }
  fetched_.clear();
  return any;
}

// ---- what settles --------------------------------------------------------------------------------------------------

bool HostMemory::settle() {
  constexpr std::size_t many = 64;  // so much that to ask the device for it pays
  bool is_much = false;
  {
    const std::lock_guard lock(mutex_);
    is_much = left_.size() > many || measured_.size() > many;
    if (!is_much && unfinished_.empty() && given_up_.empty()) return false;
  }
  Arbiter::expect_free("values are copied to the host");
  const bool put = begin_and_finish_puts();
  const bool given_up = free_given_up();
  if (is_much) {
    free_what_left();
    learn();
  }
  return put || given_up;
}

void HostMemory::settle_all() {
  (void)settle();
  free_what_left();
  learn();
}

// Finishes those whose value was dropped: nobody but the transfer has the memory.
bool HostMemory::begin_and_finish_puts() {
  std::vector<Transfer> puts, unfinished;
  {
    const std::lock_guard lock(mutex_);
    puts.swap(unfinished_);
  }
  bool any = false;
  for (const Transfer& transfer : puts) {
    begin_put(*transfer);
    const auto [over, dropped] = [&] {
      const std::lock_guard lock(mutex_);
      const bool has_none = !transfer->from;
      return std::pair(has_none, !has_none && transfer->from.use_count() == 1);
    }();
    if (dropped) finish_put(*transfer);
    any |= over || dropped;
    if (!over && !dropped) unfinished.push_back(transfer);
  }
  if (unfinished.empty()) return any;
  const std::lock_guard lock(mutex_);
  unfinished_.insert(unfinished_.begin(), unfinished.begin(), unfinished.end());
  return any;
}

bool HostMemory::free_given_up() {
  std::vector<GivenUp> given_up;
  {
    const std::lock_guard lock(mutex_);
    given_up.swap(given_up_);
  }
  for (GivenUp& one : given_up) {
    if (one.by) wait_on_device(*one.by, one.allocated_on);
    Arbiter::discard(std::move(one.memory));
  }
  return !given_up.empty();
}

void HostMemory::free_later() {
  {
    const std::lock_guard lock(mutex_);
    if (given_up_.empty()) return;
  }
  Arbiter::after([host = shared_from_this()] { (void)host->free_given_up(); });
}

// Their bytes are here for as long as the device copies them.
void HostMemory::free_what_left() {
  std::vector<Transfer> left, busy;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(left_, [&](const Transfer& one) {
      if (one->state == State::putting) return false;
      left.push_back(one);
      return true;
    });
  }
  for (const Transfer& transfer : left) {
    if (!is_over(transfer->put) || !is_over(transfer->get)) {
      busy.push_back(transfer);
    } else if (transfer->there) {
      transfer->there = c10::Storage();
      give_room_back(static_cast<Bytes>(transfer->bytes));
    }
  }
  const std::lock_guard lock(mutex_);
  left_.insert(left_.begin(), busy.begin(), busy.end());
}

void HostMemory::learn() {
  constexpr std::size_t most = 256;  // a device that is far behind is asked about the newest
  constexpr double microseconds = 1000;
  std::vector<Measured> told, pending;
  {
    const std::lock_guard lock(mutex_);
    told.swap(measured_);
  }
  for (Measured& one : told) {
    if (!is_over(one.span)) {
      pending.push_back(std::move(one));
      continue;
    }
    const double seen = microseconds * one.span->from.elapsedTime(one.span->to);
    const std::lock_guard lock(mutex_);
    LearntLine& learnt = one.put ? put_time_ : get_time_;
    learnt.learn(static_cast<Bytes>(one.bytes), seen);
    (one.put ? terms_.put : terms_.get).time = learnt.line();
  }
  const std::lock_guard lock(mutex_);
  measured_.insert(measured_.begin(), std::make_move_iterator(pending.begin()), std::make_move_iterator(pending.end()));
  if (measured_.size() > most) measured_.erase(measured_.begin(), measured_.end() - most);
}

}  // namespace reprise::internal
