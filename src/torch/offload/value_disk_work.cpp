// The work of a disk: what is done with one transfer, by its thread or by whoever cannot wait for that, and what it
// took.
#include <algorithm>
#include <system_error>
#include <utility>

#include "reprise/store/store.h"
#include "torch/libtorch/per_thread.h"
#include "torch/memory/arbiter.h"
#include "torch/offload/value_disk.h"

namespace reprise::internal {

void ValueDisk::begin(const DiskTransfer& transfer) try {
  thread_->offload({transfer.key()});
} catch (const std::system_error&) {  // there is no thread to be had: whoever needs it does it
}

// On the thread of the disk. All of its CPU time belongs to transfers: what it takes to be woken is a part of the next
// one.
void ValueDisk::work_on(const std::string& number) {
  struct Worked {
    Stamp until;
  };
  Stamp& since = of_thread<Worked>().until;
  Lock lock(mutex_);
  const std::shared_ptr<DiskTransfer> transfer = transfers_.find(number);
  if (!transfer) return;
  since.time = std::max(since.time, transfer->asked_at);
  switch (transfer->state) {
    case State::to_write: since += write(*transfer, lock, since); return;
    case State::to_read: since += read(*transfer, lock, since); return;
    case State::to_remove: since += remove(*transfer, lock, since); return;
    default: return;  // somebody else has done it
  }
}

Spent ValueDisk::write(DiskTransfer& transfer, Lock& lock, const Stamp& since) {
  transfer.state = State::writing;
  const std::span contents = DiskTransfer::bytes_in(transfer.memory);
  std::shared_ptr<ValueFile> file;
  const Outcome outcome = work(lock, since, [&] { file = write_file(transfer.key(), contents); });
  leave_memory(transfer);
  transfer.state = State::there;
  if (file) {
    transfer.file = std::move(file);
    account_.done(Work::put, transfer.bytes, outcome.spent);
  } else {
    fail(transfer, outcome.error);
  }
  changed_.notify_all();
  if (transfer.evicted) (void)remove(transfer, lock, Stamp::now());
  return outcome.spent;
}

Spent ValueDisk::read(DiskTransfer& transfer, Lock& lock, const Stamp& since) {
  transfer.state = State::reading;
  const std::span contents = DiskTransfer::bytes_to(transfer.memory);
  bool arrived = false;
  const Outcome outcome = work(lock, since, [&, held = transfer.file]() mutable {
    const std::shared_ptr<ValueFile> file = std::move(held);  // may be the last one: it goes before the lock comes back
    if (files_.ended()) throw DiskError("[session] the process is about to end: nothing is read");
    file->read(transfer.key(), contents);
    arrived = true;
  });
  transfer.state = State::arrived;
  if (arrived) {
    account_.done(Work::get, transfer.bytes, outcome.spent);
  } else {
    leave_memory(transfer);
    fail(transfer, outcome.error);
  }
  changed_.notify_all();
  if (transfer.evicted) {
    leave_memory(transfer);
    (void)remove(transfer, lock, Stamp::now());
  }
  return outcome.spent;
}

// Does it without the lock.
ValueDisk::Outcome ValueDisk::work(Lock& lock, const Stamp& since, c10::function_ref<void()> what) {
  Outcome outcome;
  ++busy_;
  lock.unlock();
  try {
    what();
  } catch (const std::exception& failure) {
    outcome.error = failure.what();
  }
  outcome.spent = since.since();
  lock.lock();
  --busy_;
  return outcome;
}

void ValueDisk::finish_writing(DiskTransfer& transfer, Lock& lock) {
  Stamp start = Stamp::now();
  if (transfer.state == State::to_write) start.cpu += write(transfer, lock, start).cpu;
  finish(Work::put, State::writing, transfer, lock, start);
}

void ValueDisk::finish_reading(DiskTransfer& transfer, Lock& lock) {
  if (transfer.state != State::to_read && transfer.state != State::reading) return;
  Stamp start = Stamp::now();
  if (transfer.state == State::to_read) start.cpu += read(transfer, lock, start).cpu;
  finish(Work::get, State::reading, transfer, lock, start);
}

// Waits for whoever is at it. What this thread did itself is no CPU time of waiting, and so not since the stamp.
void ValueDisk::finish(Work work, State under_way, DiskTransfer& transfer, Lock& lock, Stamp start) {
  changed_.wait(lock, [&] { return transfer.state != under_way; });
  const Spent spent = start.since();
  account_.waited(spent.time);
  account_.called(work, spent.cpu);
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
Spent ValueDisk::remove(DiskTransfer& transfer, Lock& lock, const Stamp& since) {
  std::shared_ptr<ValueFile> file = std::move(transfer.file);
  const std::size_t bytes = transfer.bytes;
  transfers_.remove(transfer);
  ++removing_;
  lock.unlock();
  const bool any = file != nullptr;
  file.reset();
  const Spent spent = since.since();
  lock.lock();
  if (any) account_.done(Work::remove, bytes, spent);
  --removing_;
  changed_.notify_all();
  return spent;
}

void ValueDisk::evict(DiskTransfer& transfer) {
  const double start = thread_microseconds();
  c10::Storage memory;
  bool has_file = false;
  {
    const std::lock_guard lock(mutex_);
    if (transfer.state == State::writing || transfer.state == State::reading) {
      transfer.evicted = true;
      return;
    }
    memory = std::exchange(transfer.memory, c10::Storage());
    transfer.state = State::to_remove;
    transfer.asked_at = wall_microseconds();
    has_file = transfer.file != nullptr;
    if (!has_file) transfers_.remove(transfer);
  }
  if (has_file) {
    begin(transfer);
    const double spent = thread_microseconds() - start;
    const std::lock_guard lock(mutex_);
    account_.called(Work::remove, spent);
  }
  Arbiter::discard(std::move(memory));
}

std::shared_ptr<ValueFile> ValueDisk::write_file(const std::string& number, std::span<const std::byte> contents) {
  auto room = files_.try_reserve(contents.size());
  if (!room) {
    remove_evicted();
    room = files_.reserve(contents.size());
  }
  return files_.write(number, contents, std::move(*room));
}

void ValueDisk::remove_evicted() {
  Lock lock(mutex_);
  for (const auto& transfer : transfers_.all()) {
    if (transfer->state == State::to_remove) (void)remove(*transfer, lock, Stamp::now());
  }
  changed_.wait(lock, [&] { return removing_ == 0; });  // what others remove is room, too
  lock.unlock();
  files_.remove_leftovers();
}

}  // namespace reprise::internal
