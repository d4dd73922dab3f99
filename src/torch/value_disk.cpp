#include "torch/value_disk.h"

#include <new>
#include <system_error>
#include <utility>

#include "reprise/store/store.h"
#include "torch/arbiter.h"
#include "torch/clock.h"
#include "torch/process.h"
#include "torch/value_disks.h"

namespace reprise::internal {

std::shared_ptr<ValueDisk> ValueDisk::open(const SessionDisk& options) {
  std::shared_ptr<ValueDisk> disk(new ValueDisk(options));
  process().disks().add(disk);
  return disk;
}

ValueDisk::ValueDisk(const SessionDisk& options)
    : files_(options),
      account_(options, files_),
      thread_(std::make_unique<BackgroundThread>(
          files_.ledger(), BackgroundThread::Work{.prefetch =
                                                      [this](const std::string& number) {
                                                        work_on(number);
                                                        return true;
                                                      },
                                                  .offload = [this](const std::string& number) { work_on(number); }})) {
}

std::shared_ptr<DiskTransfer> ValueDisk::put(c10::Storage storage) {
  const std::lock_guard lock(mutex_);
  auto transfer = transfers_.add(std::move(storage));
  begin(*transfer, true);
  return transfer;
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
    transfers_.forget_written();
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

DiskTerms ValueDisk::terms() const {
  const std::lock_guard lock(mutex_);
  return account_.terms();
}

DiskTotals ValueDisk::totals() const {
  const std::lock_guard lock(mutex_);
  return account_.totals();
}

// ---- one transfer --------------------------------------------------------------------------------------------------

void ValueDisk::begin(DiskTransfer& transfer, bool to_disk) try {
  to_disk ? thread_->offload({transfer.key()}) : thread_->prefetch({transfer.key()});
} catch (const std::system_error&) {  // there is no thread to be had: whoever needs it does it
}

void ValueDisk::work_on(const std::string& number) {
  Lock lock(mutex_);
  const std::shared_ptr<DiskTransfer> transfer = transfers_.find(number);
  if (!transfer) return;
  switch (transfer->state) {
    case State::to_write: return write(*transfer, lock);
    case State::to_read: return read(*transfer, lock);
    case State::to_remove: return remove(*transfer, lock);
    default: return;  // somebody else has done it
  }
}

void ValueDisk::write(DiskTransfer& transfer, Lock& lock) {
  transfer.state = State::writing;
  const std::span contents = DiskTransfer::bytes_in(transfer.memory);
  std::shared_ptr<ValueFile> file;
  const Outcome outcome = work(lock, [&] { file = write_file(transfer.key(), contents); });
  leave_memory(transfer);
  transfer.state = State::there;
  if (file) {
    transfer.file = std::move(file);
    account_.put(transfer.bytes, outcome.microseconds);
  } else {
    fail(transfer, outcome.error);
  }
  changed_.notify_all();
  if (transfer.forgotten) remove(transfer, lock);
}

void ValueDisk::read(DiskTransfer& transfer, Lock& lock) {
  transfer.state = State::reading;
  const std::span contents = DiskTransfer::bytes_to(transfer.memory);
  bool arrived = false;
  const Outcome outcome = work(lock, [&, held = transfer.file]() mutable {
    const std::shared_ptr<ValueFile> file = std::move(held);  // may be the last one: it goes before the lock comes back
    if (files_.ended()) throw DiskError("[session] the process is about to end: nothing is read");
    file->read(transfer.key(), contents);
    arrived = true;
  });
  transfer.state = State::arrived;
  if (arrived) {
    account_.got(transfer.bytes, outcome.microseconds);
  } else {
    leave_memory(transfer);
    fail(transfer, outcome.error);
  }
  changed_.notify_all();
  if (!transfer.forgotten) return;
  leave_memory(transfer);
  remove(transfer, lock);
}

// Does it without the lock.
ValueDisk::Outcome ValueDisk::work(Lock& lock, c10::function_ref<void()> what) {
  Outcome outcome;
  ++busy_;
  lock.unlock();
  const double start = wall_microseconds();
  try {
    what();
  } catch (const std::exception& failure) {
    outcome.error = failure.what();
  }
  outcome.microseconds = wall_microseconds() - start;
  lock.lock();
  --busy_;
  return outcome;
}

void ValueDisk::finish_writing(DiskTransfer& transfer, Lock& lock) {
  const double start = wall_microseconds();
  if (transfer.state == State::to_write) write(transfer, lock);
  changed_.wait(lock, [&] { return transfer.state != State::writing; });
  account_.waited(wall_microseconds() - start);
}

void ValueDisk::finish_reading(DiskTransfer& transfer, Lock& lock) {
  const double start = wall_microseconds();
  if (transfer.state == State::to_read) read(transfer, lock);
  changed_.wait(lock, [&] { return transfer.state != State::reading; });
  account_.waited(wall_microseconds() - start);
}

void ValueDisk::leave_memory(DiskTransfer& transfer) {
  if (!transfer.memory) return;
  done_.push_back(std::exchange(transfer.memory, c10::Storage()));
  any_done_.store(true, std::memory_order_release);
}

void ValueDisk::fail(DiskTransfer& transfer, const std::string& why) {
  transfer.state = State::lost;
  transfer.error = why;
  account_.failed(why);
}

// Removes the file. The lock is not held meanwhile.
void ValueDisk::remove(DiskTransfer& transfer, Lock& lock) {
  std::shared_ptr<ValueFile> file = std::move(transfer.file);
  transfers_.remove(transfer);
  ++removing_;
  lock.unlock();
  file.reset();
  lock.lock();
  --removing_;
  changed_.notify_all();
}

void ValueDisk::forget(DiskTransfer& transfer) {
  c10::Storage memory;
  {
    const std::lock_guard lock(mutex_);
    if (transfer.state == State::writing || transfer.state == State::reading) {
      transfer.forgotten = true;
      return;
    }
    memory = std::exchange(transfer.memory, c10::Storage());
    transfer.state = State::to_remove;
    if (transfer.file) {
      begin(transfer, true);
    } else {
      transfers_.remove(transfer);
    }
  }
  Arbiter::discard(std::move(memory));
}

std::shared_ptr<ValueFile> ValueDisk::write_file(const std::string& number, std::span<const std::byte> contents) {
  auto room = files_.try_reserve(contents.size());
  if (!room) {
    remove_forgotten();
    room = files_.reserve(contents.size());
  }
  return files_.write(number, contents, std::move(*room));
}

void ValueDisk::remove_forgotten() {
  Lock lock(mutex_);
  for (const auto& transfer : transfers_.all()) {
    if (transfer->state == State::to_remove) remove(*transfer, lock);
  }
  changed_.wait(lock, [&] { return removing_ == 0; });  // what others remove is room, too
  lock.unlock();
  files_.remove_leftovers();
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
