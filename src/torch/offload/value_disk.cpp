#include "torch/offload/value_disk.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "reprise/store/store.h"
#include "torch/libtorch/clock.h"
#include "torch/memory/arbiter.h"
#include "torch/offload/value_tiers.h"

namespace reprise::internal {

std::shared_ptr<ValueDisk> ValueDisk::open(const DiskOffload& options) {
  std::shared_ptr<ValueDisk> disk(new ValueDisk(options));
  if (disk->account_.measures()) disk->measure();
  ValueTiers::of_process().add(disk);
  return disk;
}

// One thing after the other, in the order in which it was asked for: that is what plans count on.
ValueDisk::ValueDisk(const DiskOffload& options)
    : files_(options),
      account_(options),
      thread_(std::make_unique<BackgroundThread>(
          files_.ledger(),
          BackgroundThread::Work{.prefetch = {}, .offload = [this](const std::string& number) { work_on(number); }})) {}

// What a file takes shows with small ones, what a byte takes with large ones. The first one is not counted: it makes
// the tables of the file system, and ours.
void ValueDisk::measure() {
  constexpr std::size_t large = 1 << 20, small = 4 << 10;
  constexpr int times = 4;
  const auto most = static_cast<std::size_t>(std::max<Bytes>(0, files_.ledger().budget() - Disk::header_bytes));
  std::vector<std::byte> contents(std::min(large, most), std::byte{0x5a});
  if (contents.empty()) return;
  // It is the thread that is measured, unless there is none.
  const auto wait_for_thread = [&](Lock& lock, c10::function_ref<bool()> done) {
    constexpr std::chrono::milliseconds longest(200);
    changed_.wait_for(lock, longest, [&] { return done(); });
  };
  const auto go_there_and_back = [&](std::size_t bytes) {
    const c10::Storage memory(c10::Storage::use_byte_size_t(), bytes,
                              c10::DataPtr(contents.data(), c10::Device(c10::DeviceType::CPU)));
    const std::shared_ptr<DiskTransfer> transfer = begin_put(memory);
    const auto is_whole = [&] {
      if (transfer->state == State::lost) throw DiskError(transfer->error);
    };
    {
      Lock lock(mutex_);
      wait_for_thread(lock, [&] { return !transfer->unwritten(); });
      finish_writing(*transfer, lock);
      is_whole();
    }
    fetch(*transfer, memory);
    {
      Lock lock(mutex_);
      wait_for_thread(lock, [&] { return transfer->state != State::to_read; });
      finish_reading(*transfer, lock);
      is_whole();
    }
    evict(*transfer);
    {
      Lock lock(mutex_);
      wait_for_thread(lock, [&] { return !transfers_.find(transfer->key()); });
      done_.clear();
    }
    remove_evicted();
  };
  go_there_and_back(contents.size());
  account_.reset();
  for (int i = 0; i < times; ++i) {
    go_there_and_back(std::min(small, contents.size()));
    go_there_and_back(contents.size());
  }
  account_.reset_totals();
}

std::shared_ptr<DiskTransfer> ValueDisk::begin_put(c10::Storage storage) {
  const double start = thread_microseconds();
  std::shared_ptr<DiskTransfer> transfer;
  {
    const std::lock_guard lock(mutex_);
    transfer = transfers_.add(std::move(storage));
    transfer->asked_at = wall_microseconds();
  }
  begin(*transfer);
  const double spent = thread_microseconds() - start;
  const std::lock_guard lock(mutex_);
  account_.called(Work::put, spent);
  return transfer;
}

void ValueDisk::fetch(DiskTransfer& transfer, c10::Storage into) {
  const double start = thread_microseconds();
  {
    const std::lock_guard lock(mutex_);
    if (transfer.state != State::there) return;
    transfer.memory = std::move(into);
    transfer.state = State::to_read;
    transfer.asked_at = wall_microseconds();
  }
  begin(transfer);
  const double spent = thread_microseconds() - start;
  const std::lock_guard lock(mutex_);
  account_.called(Work::get, spent);
}

bool ValueDisk::settle() {
  if (!any_done_.load(std::memory_order_acquire)) return false;
  std::vector<c10::Storage> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
    any_done_.store(false, std::memory_order_release);
  }
  for (c10::Storage& storage : done) Arbiter::discard(std::move(storage));
  return !done.empty();
}

bool ValueDisk::settle_next() {
  if (settle()) return true;
  Arbiter::expect_free("a value is written to disk");
  {
    Lock lock(mutex_);
    const std::shared_ptr<DiskTransfer> next = transfers_.next_unwritten();
    if (!next) return false;
    finish_writing(*next, lock);
  }
  (void)settle();
  return true;
}

void ValueDisk::settle_all() {
  Arbiter::expect_free("files are waited for");
  {
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return busy_ == 0; });
    transfers_.evict_written();
  }
  (void)settle();
}

void ValueDisk::end() noexcept try {
  files_.end();
  std::vector<std::shared_ptr<ValueFile>> leaving;
  {
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return busy_ == 0; });
    for (const auto& transfer : transfers_.all()) {
      if (!transfer->file) continue;
      leaving.push_back(std::move(transfer->file));
      fail(*transfer, "[session] the process is about to end, and the file is gone");
    }
  }
  leaving.clear();
} catch (...) {  // out of memory: the next process removes them
}

bool ValueDisk::give_up_fetched() {
  std::vector<c10::Storage> given_up;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& transfer : transfers_.all()) {
      if (c10::Storage memory = transfer->give_up_fetched()) given_up.push_back(std::move(memory));
    }
  }
  for (c10::Storage& storage : given_up) Arbiter::discard(std::move(storage));
  return !given_up.empty();
}

TierTerms ValueDisk::terms() const {
  const std::lock_guard lock(mutex_);
  return account_.terms();
}

DiskTotals ValueDisk::totals() const {
  const std::lock_guard lock(mutex_);
  return account_.totals();
}

// ---- fork ----------------------------------------------------------------------------------------------------------

void ValueDisk::lock_for_fork() {
  mutex_.lock();
  thread_->before_fork();
  files_.lock_for_fork();
}

void ValueDisk::unlock_in_parent() {
  files_.unlock_in_parent();
  thread_->after_fork_in_parent();
  mutex_.unlock();
}

void ValueDisk::unlock_in_child() {
  busy_ = removing_ = 0;
  files_.unlock_in_child(transfers_.settle_after_fork());
  new (&changed_) std::condition_variable;  // not destroyed before: that would wait for those who waited on it
  thread_->after_fork_in_child();
  mutex_.unlock();
}

}  // namespace reprise::internal
