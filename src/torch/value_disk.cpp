#include "torch/value_disk.h"

#include <algorithm>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "reprise/store/store.h"
#include "torch/arbiter.h"
#include "torch/clock.h"
#include "torch/libtorch.h"
#include "torch/meter.h"
#include "torch/process.h"
#include "torch/value_disks.h"

namespace reprise::internal {

struct DiskCopy::Transfer {
  std::uint64_t number = 0;
  std::size_t bytes = 0;
  // Under the lock of the disk, from here on.
  State state = State::to_write;
  bool forgotten = false;  // to be removed by whoever is busy with it
  c10::Storage memory;
  std::shared_ptr<DiskFile> file;
  std::string error;  // if it is lost

  [[nodiscard]] std::string key() const { return std::to_string(number); }
};

namespace {

std::span<const std::byte> bytes_in(const c10::Storage& storage) {
  return {static_cast<const std::byte*>(storage.data()), storage.nbytes()};
}
bool is_unwritten(const DiskCopy::Transfer& transfer) {
  return transfer.state == DiskCopy::State::to_write || transfer.state == DiskCopy::State::writing;
}
std::span<std::byte> bytes_to(const c10::Storage& storage) {
  return {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()};
}

}  // namespace

// ---- one copy ------------------------------------------------------------------------------------------------------

DiskCopy::DiskCopy(std::shared_ptr<ValueDisk> disk, std::shared_ptr<Transfer> transfer)
    : disk_(std::move(disk)), transfer_(std::move(transfer)) {}

DiskCopy::~DiskCopy() {
  disk_->forget(*transfer_);
  if (disk_.use_count() == 1) Arbiter::discard_all(std::move(disk_));  // its files go with it: not under the lock
}

bool DiskCopy::usable() const {
  const std::lock_guard lock(disk_->mutex_);
  return transfer_->state != State::lost;
}

bool DiskCopy::is_being_written() const {
  const std::lock_guard lock(disk_->mutex_);
  return is_unwritten(*transfer_);
}

bool DiskCopy::fetched() const {
  const std::lock_guard lock(disk_->mutex_);
  const State state = transfer_->state;
  return state == State::to_read || state == State::reading || state == State::arrived;
}

void DiskCopy::finish_writing() const {
  Arbiter::expect_free("a value is written to disk");
  ValueDisk::Lock lock(disk_->mutex_);
  if (!is_unwritten(*transfer_)) return;
  const double start = wall_microseconds();
  if (transfer_->state == State::to_write) disk_->write(*transfer_, lock);
  disk_->wait_while(*transfer_, State::writing, lock);
  disk_->count_wait(start);
}

void DiskCopy::fetch() const {
  {
    const std::lock_guard lock(disk_->mutex_);
    if (transfer_->state != State::there) return;
  }
  c10::Storage memory = libtorch::new_storage(transfer_->bytes);
  if (meter::Header* const header = meter::header_of(*memory.unsafeGetStorageImpl())) meter::track(*header);
  const std::lock_guard lock(disk_->mutex_);
  if (transfer_->state != State::there) return;
  transfer_->memory = std::move(memory);
  transfer_->state = State::to_read;
  disk_->begin(*transfer_, false);
}

void DiskCopy::give_up_fetched() const {
  c10::Storage memory;
  {
    const std::lock_guard lock(disk_->mutex_);
    if (transfer_->state != State::to_read && transfer_->state != State::arrived) return;
    transfer_->state = State::there;
    memory = std::move(transfer_->memory);
  }
  Arbiter::discard(std::move(memory));
}

c10::Storage DiskCopy::contents() const {
  Arbiter::expect_free("a value is read from disk");
  Transfer& mine = *transfer_;
  std::shared_ptr<Disk> files;  // outlives the file
  std::shared_ptr<DiskFile> file;
  {
    ValueDisk::Lock lock(disk_->mutex_);
    const double start = wall_microseconds();
    if (mine.state == State::to_read) disk_->read(mine, lock);
    disk_->wait_while(mine, State::reading, lock);
    disk_->count_wait(start);
    if (mine.state == State::lost) throw DiskError(mine.error);
    if (mine.state == State::arrived) {
      mine.state = State::there;
      return std::exchange(mine.memory, c10::Storage());
    }
    if (mine.memory) return mine.memory;
    files = disk_->files_;
    file = mine.file;
  }
  c10::Storage memory = libtorch::new_storage(mine.bytes);
  const double start = wall_microseconds();
  try {
    files->read(mine.key(), *file, bytes_to(memory));
  } catch (const DiskError& error) {
    const std::lock_guard lock(disk_->mutex_);
    disk_->fail(mine, error.what());
    throw;
  }
  const double microseconds = wall_microseconds() - start;
  const std::lock_guard lock(disk_->mutex_);
  disk_->totals_.got += static_cast<Bytes>(mine.bytes);
  disk_->note(disk_->terms_.get_byte, disk_->terms_.get_file, mine.bytes, microseconds);
  disk_->count_wait(start);
  return memory;
}

// ---- the disk ------------------------------------------------------------------------------------------------------

std::shared_ptr<ValueDisk> ValueDisk::open(const SessionDisk& options) {
  std::shared_ptr<ValueDisk> disk(new ValueDisk(options));
  options.eager ? disk->take_for_free() : disk->measure();
  process().disks().add(disk);
  return disk;
}

ValueDisk::ValueDisk(const SessionDisk& options)
    : ledger_(options.bytes),
      files_(std::make_shared<Disk>(options.files ? *options.files : FileSystem::machine(), options.folder)),
      thread_(std::make_unique<BackgroundThread>(
          ledger_, BackgroundThread::Work{.prefetch =
                                              [this](const std::string& number) {
                                                work_on(number);
                                                return true;
                                              },
                                          .offload = [this](const std::string& number) { work_on(number); }})) {
  if (options.bytes < largest_bytes) terms_.capacity = options.bytes;
}

ValueDisk::~ValueDisk() {
  thread_.reset();
  transfers_.clear();
}

void ValueDisk::take_for_free() {
  free_ = true;
  terms_.least = 1;
}

// What a file costs shows with a small one, what a byte costs with a large one. The first one is not counted: it makes
// the tables of the file system, and ours.
void ValueDisk::measure() {
  constexpr std::size_t large = 1 << 20, small = 4 << 10;
  constexpr int times = 3;
  const auto most = static_cast<std::size_t>(std::max<Bytes>(0, ledger_.budget() - Disk::header_bytes));
  std::vector<std::byte> contents(std::min(large, most), std::byte{0x5a});
  if (contents.empty()) return;
  const auto measured = [&](std::size_t bytes, double& put, double& get) {
    for (int i = -1; i < times; ++i) {
      const double start = wall_microseconds();
      const auto file = files_->write("measuring", std::span(contents).first(bytes), Reservation());
      const double written = wall_microseconds();
      files_->read("measuring", *file, std::span(contents).first(bytes));
      if (i < 0) continue;
      put += (written - start) / times;
      get += (wall_microseconds() - written) / times;
    }
  };
  double put = 0, get = 0;
  const std::size_t little = std::min(small, contents.size() / 2);
  measured(little, terms_.put_file, terms_.get_file);
  measured(contents.size(), put, get);
  const auto more = static_cast<double>(contents.size() - little);
  terms_.put_byte = std::max(0.0, put - terms_.put_file) / more;
  terms_.get_byte = std::max(0.0, get - terms_.get_file) / more;
}

std::shared_ptr<const DiskCopy> ValueDisk::put(c10::Storage storage) {
  auto transfer = std::make_shared<Transfer>();
  transfer->bytes = storage.nbytes();
  transfer->memory = std::move(storage);
  auto copy = std::make_shared<const DiskCopy>(shared_from_this(), transfer);
  const std::lock_guard lock(mutex_);
  transfer->number = next_++;
  transfers_[transfer->number] = transfer;
  unwritten_.push_back(transfer);
  begin(*transfer, true);
  return copy;
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
    while (!unwritten_.empty() && !is_unwritten(*unwritten_.front())) unwritten_.pop_front();
    if (unwritten_.empty()) return false;
    // Better to write the next one than to wait for the one that is being written.
    const bool another = unwritten_.size() > 1 && unwritten_[1]->state == State::to_write;
    const std::shared_ptr<Transfer> next = unwritten_[another && unwritten_[0]->state == State::writing ? 1 : 0];
    const double start = wall_microseconds();
    if (next->state == State::to_write) write(*next, lock);
    wait_while(*next, State::writing, lock);
    count_wait(start);
  }
  (void)settle();
  return true;
}

void ValueDisk::settle_all() {
  Arbiter::expect_free("files are waited for");
  {
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return busy_ == 0; });
    std::erase_if(unwritten_, [](const auto& transfer) { return !is_unwritten(*transfer); });
  }
  (void)settle();
}

void ValueDisk::end() noexcept try {
  std::shared_ptr<Disk> files;
  std::vector<std::shared_ptr<DiskFile>> leaving;
  {
    Lock lock(mutex_);
    files = std::move(files_);
    files_.reset();
    changed_.wait(lock, [&] { return busy_ == 0; });
    for (const auto& [number, transfer] : transfers_) {
      if (!transfer->file) continue;
      leaving.push_back(std::move(transfer->file));
      fail(*transfer, "[session] the process is about to end, and the file is gone");
    }
  }
  leaving.clear();
} catch (...) {  // out of memory: the next process removes them
}

std::shared_ptr<Disk> ValueDisk::files() const {
  const std::lock_guard lock(mutex_);
  return files_;
}

bool ValueDisk::give_up_fetched() {
  std::vector<c10::Storage> given_up;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, transfer] : transfers_) {
      if (transfer->state != State::to_read && transfer->state != State::arrived) continue;
      transfer->state = State::there;
      given_up.push_back(std::move(transfer->memory));
    }
  }
  for (c10::Storage& storage : given_up) Arbiter::discard(std::move(storage));
  return !given_up.empty();
}

DiskTerms ValueDisk::terms() const {
  const std::lock_guard lock(mutex_);
  return terms_;
}

ValueDisk::Totals ValueDisk::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

// ---- one transfer --------------------------------------------------------------------------------------------------

void ValueDisk::begin(Transfer& transfer, bool to_disk) try {
  to_disk ? thread_->offload({transfer.key()}) : thread_->prefetch({transfer.key()});
} catch (const std::system_error&) {  // there is no thread to be had: whoever needs it does it
}

void ValueDisk::work_on(const std::string& number) {
  Lock lock(mutex_);
  const auto found = transfers_.find(std::stoull(number));
  if (found == transfers_.end()) return;
  const std::shared_ptr<Transfer> transfer = found->second;
  switch (transfer->state) {
    case State::to_write: return write(*transfer, lock);
    case State::to_read: return read(*transfer, lock);
    case State::to_remove: return remove(*transfer, lock);
    default: return;  // somebody else has done it
  }
}

void ValueDisk::write(Transfer& transfer, Lock& lock) {
  transfer.state = State::writing;
  ++busy_;
  const std::span contents = bytes_in(transfer.memory);
  const std::string key = transfer.key();
  lock.unlock();
  std::shared_ptr<DiskFile> file;
  std::string error;
  const double start = wall_microseconds();
  try {
    file = write_file(key, contents);
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  const double microseconds = wall_microseconds() - start;
  lock.lock();
  --busy_;
  leave_memory(transfer);
  transfer.state = State::there;
  if (file) {
    transfer.file = std::move(file);
    totals_.put += static_cast<Bytes>(transfer.bytes);
    note(terms_.put_byte, terms_.put_file, transfer.bytes, microseconds);
  } else {
    fail(transfer, error);
  }
  changed_.notify_all();
  if (transfer.forgotten) remove(transfer, lock);
}

void ValueDisk::read(Transfer& transfer, Lock& lock) {
  transfer.state = State::reading;
  ++busy_;
  const std::span contents = bytes_to(transfer.memory);
  const std::string key = transfer.key();
  const std::shared_ptr<Disk> files = files_;
  std::shared_ptr<DiskFile> file = transfer.file;
  lock.unlock();
  std::optional<std::string> error;
  const double start = wall_microseconds();
  try {
    if (!files) throw DiskError("[session] the process is about to end: nothing is read");
    files->read(key, *file, contents);
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  const double microseconds = wall_microseconds() - start;
  file.reset();
  lock.lock();
  --busy_;
  transfer.state = State::arrived;
  if (!error) {
    totals_.got += static_cast<Bytes>(transfer.bytes);
    note(terms_.get_byte, terms_.get_file, transfer.bytes, microseconds);
  } else {
    leave_memory(transfer);
    fail(transfer, *error);
  }
  changed_.notify_all();
  if (!transfer.forgotten) return;
  leave_memory(transfer);
  remove(transfer, lock);
}

void ValueDisk::wait_while(const Transfer& transfer, State state, Lock& lock) {
  changed_.wait(lock, [&] { return transfer.state != state; });
}

void ValueDisk::count_wait(double start) {
  totals_.waited += (wall_microseconds() - start) * 1e-6;
}

void ValueDisk::leave_memory(Transfer& transfer) {
  if (!transfer.memory) return;
  done_.push_back(std::exchange(transfer.memory, c10::Storage()));
  any_done_.store(true, std::memory_order_release);
}

void ValueDisk::fail(Transfer& transfer, const std::string& why) {
  transfer.state = State::lost;
  transfer.error = why;
  ++totals_.failures;
  totals_.last_failure = why;
}

// What a byte costs moves towards what it cost now, by how much was seen.
void ValueDisk::note(double& rate, double of_file, std::size_t bytes, double microseconds) {
  constexpr std::size_t enough_to_tell = 64 << 10;
  constexpr double memory_of_bytes = 64 << 20;
  totals_.seconds += microseconds * 1e-6;
  if (free_ || bytes < enough_to_tell) return;
  const double seen = std::max(0.0, microseconds - of_file) / static_cast<double>(bytes);
  rate += (seen - rate) * std::min(0.25, static_cast<double>(bytes) / memory_of_bytes);
}

// Removes the file. The lock is not held meanwhile.
void ValueDisk::remove(Transfer& transfer, Lock& lock) {
  std::shared_ptr<DiskFile> file = std::move(transfer.file);
  const auto found = transfers_.find(transfer.number);
  std::shared_ptr<Transfer> last;
  if (found != transfers_.end()) {
    last = std::move(found->second);
    transfers_.erase(found);
  }
  lock.unlock();
  file.reset();
  lock.lock();
}

void ValueDisk::forget(Transfer& transfer) {
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
      transfers_.erase(transfer.number);
    }
  }
  Arbiter::discard(std::move(memory));
}

std::shared_ptr<DiskFile> ValueDisk::write_file(const std::string& number, std::span<const std::byte> contents) {
  const std::shared_ptr<Disk> files = this->files();
  if (!files) throw DiskError("[session] the process is about to end: nothing is written");
  const Bytes bytes = static_cast<Bytes>(contents.size()) + Disk::header_bytes;
  auto room = ledger_.try_reserve(bytes);
  if (!room) {
    remove_forgotten();
    room = ledger_.try_reserve(bytes);
  }
  if (!room) {
    throw DiskError("[session] option disk.bytes is " + std::to_string(ledger_.budget()) + ", of which " +
                    std::to_string(ledger_.used()) + " are taken: " + std::to_string(bytes) + " more do not fit");
  }
  std::shared_ptr<DiskFile> file = files->write(number, contents, std::move(*room));
  file->room.settle();
  return file;
}

void ValueDisk::remove_forgotten() {
  Lock lock(mutex_);
  std::vector<std::shared_ptr<Transfer>> forgotten;
  for (const auto& [number, transfer] : transfers_) {
    if (transfer->state == State::to_remove) forgotten.push_back(transfer);
  }
  for (const auto& transfer : forgotten) remove(*transfer, lock);
  const std::shared_ptr<Disk> files = files_;
  lock.unlock();
  if (!files) return;
  try {
    (void)files->remove_leftovers("");
  } catch (const DiskError&) {  // they stay counted
  }
}

// ---- fork ----------------------------------------------------------------------------------------------------------

void ValueDisk::lock_for_fork() {
  mutex_.lock();
  thread_->before_fork();
  if (files_) files_->before_fork();
  ledger_.before_fork();
}

void ValueDisk::unlock_in_parent() {
  ledger_.after_fork_in_parent();
  if (files_) files_->after_fork_in_parent();
  thread_->after_fork_in_parent();
  mutex_.unlock();
}

// What other threads were busy with, nobody is any more. References of theirs would never end: they get empty files to
// refer to.
void ValueDisk::unlock_in_child() {
  if (files_) files_->after_fork_in_child();
  busy_ = 0;
  Bytes settled = 0;
  for (auto& [number, transfer] : transfers_) {
    if (transfer->state == State::writing) transfer->state = State::to_write;
    if (transfer->state == State::reading) transfer->state = State::to_read;
    if (!transfer->file) continue;
    if (transfer->file.use_count() > 1) transfer->file = std::make_shared<DiskFile>(std::move(*transfer->file));
    transfer->file->room.settle_after_fork();
    settled += transfer->file->room.bytes();
  }
  ledger_.after_fork_in_child(settled);
  new (&changed_) std::condition_variable;  // not destroyed before: that would wait for those who waited on it
  thread_->after_fork_in_child();
  mutex_.unlock();
}

}  // namespace reprise::internal
