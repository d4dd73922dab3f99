#include "torch/offload/transfer_tier.h"

#include <new>
#include <utility>

#include "reprise/torch/errors.h"
#include "torch/libtorch/libtorch.h"
#include "torch/libtorch/per_thread.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"

namespace reprise::internal {
namespace {

constexpr std::size_t many_transfers = 64;  // so many that to ask the device for them pays

Fingerprint fingerprint_of(const c10::Storage& contents) {
  if (contents.device_type() == c10::DeviceType::CPU) return fingerprint(contents.data(), contents.nbytes());
  const std::vector<std::byte> bytes = libtorch::on_host(contents);
  return fingerprint(bytes.data(), bytes.size());
}

}  // namespace

// ---- a copy --------------------------------------------------------------------------------------------------------

// What the tier has goes with the last one, not under the arbiter's lock.
TierCopy::~TierCopy() {
  tier_->drop(transfer_);
  Arbiter::discard_all(std::move(tier_));
}

TransferState TierCopy::state() const {
  const std::lock_guard lock(tier_->mutex_);
  return transfer_->state;
}

// ---- what is done with one transfer --------------------------------------------------------------------------------

TransferTier::TransferTier(c10::Device device, Runs runs, Bytes capacity, TierCosts costs, TierAccount::Learns learns)
    : device_(device), room_(capacity), account_(std::move(costs), learns), on_streams_(runs == Runs::on_streams) {}

// Counts all CPU time of the thread as that of transfers: what it takes to be woken is a part of the next one.
void TransferTier::work_on(const Shared& transfer) {
  struct Worked {
    Stamp until;
  };
  Stamp& since = of_thread<Worked>().until;
  Lock lock(mutex_);
  since.time = std::max(since.time, transfer->asked_at);
  switch (transfer->state) {
    case State::to_put: since += do_put(transfer, lock, since); return;
    case State::to_get: since += do_get(transfer, lock, since); return;
    case State::to_remove: since += do_remove(transfer, lock, since); return;
    default: return;  // somebody else has done it
  }
}

Spent TransferTier::do_put(const Shared& transfer, Lock& lock, const Stamp& since) {
  transfer->become(State::putting);
  Fingerprint expected = transfer->expected;
  std::unique_ptr<TierContents> contents;
  const Outcome outcome = without_lock(lock, since, [&] {
    contents = store(*transfer);
    if (!transfer->verifies || device_.is_cpu() || libtorch::is_capturing(device_)) return;
    libtorch::use_here(transfer->memory.storage, transfer->memory.stream);
    expected = fingerprint_of(transfer->memory.storage);
  });
  if (contents) transfer->memory.copied = contents->copied;
  transfer->contents = std::move(contents);
  transfer->expected = std::move(expected);
  if (!outcome.error) {
    transfer->become(on_streams_ ? State::put : State::stored);
    account_.done(Work::put, transfer->bytes, outcome.spent);
  } else {
    fail(*transfer, transfer->contents ? State::failed : State::lost, outcome);
  }
  if (!transfer->is_in_memory()) return_memory(*transfer);
  changed_.notify_all();
  if (transfer->dropped) remove_dropped(transfer, lock);
  return outcome.spent;
}

Spent TransferTier::do_get(const Shared& transfer, Lock& lock, const Stamp& since) {
  transfer->become(State::getting);
  const Outcome outcome = without_lock(lock, since, [&] { load(*transfer); });
  if (!outcome.error) {
    transfer->memory.copied = transfer->contents->copied;
    transfer->become(State::arrived);
    account_.done(Work::get, transfer->bytes, outcome.spent);
  } else {
    return_memory(*transfer);
    fail(*transfer, on_streams_ ? State::failed : State::lost, outcome);
  }
  changed_.notify_all();
  if (transfer->dropped) remove_dropped(transfer, lock);
  return outcome.spent;
}

TransferTier::Outcome TransferTier::without_lock(Lock& lock, const Stamp& since, c10::function_ref<void()> work) {
  Outcome outcome;
  ++busy_;
  lock.unlock();
  try {
    work();
  } catch (const std::exception& failure) {
    outcome.why = failure.what();
    outcome.error = std::current_exception();
  }
  outcome.spent = since.since();
  lock.lock();
  --busy_;
  return outcome;
}

void TransferTier::fail(TierTransfer& transfer, State how, const Outcome& outcome) {
  transfer.become(how);
  transfer.failure = how == State::lost ? lost_error(outcome.why) : outcome.error;
  account_.failed(outcome.why);
}

void TransferTier::return_memory(TierTransfer& transfer) {
  if (!transfer.memory.storage) return;
  returned_.push_back(std::exchange(transfer.memory, {}));
  any_to_drain_.store(true, std::memory_order_release);
}

// Ends the contents, without the lock, when the device has done all copies from and to them.
Spent TransferTier::do_remove(const Shared& transfer, Lock& lock, const Stamp& since) {
  transfer->become(State::removed);
  all_.erase(transfer->number);
  std::unique_ptr<TierContents> contents = std::move(transfer->contents);
  ++removing_;
  lock.unlock();
  try {
    if (contents->copied) contents->copied->to.synchronize();
  } catch (const std::exception&) {  // a device that failed copies nothing any more; who waits for it is told
  }
  contents.reset();
  const Spent spent = since.since();
  lock.lock();
  account_.done(Work::remove, transfer->bytes, spent);
  --removing_;
  changed_.notify_all();
  return spent;
}

// Goes on with a transfer whose last copy ended while somebody was busy with it.
void TransferTier::remove_dropped(const Shared& transfer, Lock& lock) {
  put_aside_to_remove(transfer);
  if (!on_streams_ && transfer->contents) (void)do_remove(transfer, lock, Stamp::now());
}

// Ends a transfer without a copy, or leaves what the tier has to whoever removes it.
void TransferTier::put_aside_to_remove(const Shared& transfer) {
  return_memory(*transfer);
  if (!transfer->contents) {
    transfer->become(State::removed);
    all_.erase(transfer->number);
    return;
  }
  transfer->become(State::to_remove);
  transfer->asked_at = wall_microseconds();
  (void)oldest_to_remove();  // those before it are removed by now
  to_remove_.push_back(transfer);
  if (to_remove_.size() > many_transfers) any_to_drain_.store(true, std::memory_order_release);
}

// ---- put -----------------------------------------------------------------------------------------------------------

std::shared_ptr<const TierCopy> TransferTier::put(c10::Storage storage, const std::optional<c10::Stream>& made_on,
                                                  bool verify) {
  Fingerprint expected;
  if (verify && device_.is_cpu()) expected = fingerprint_of(storage);
  auto copy = std::make_shared<TierCopy>(shared_from_this(),
                                         begin_put({std::move(storage), made_on}, std::move(expected), verify));
  drain_later();
  return copy;
}

TransferTier::Shared TransferTier::begin_put(TransferMemory memory, Fingerprint expected, bool verify) {
  const double start = thread_microseconds();
  auto transfer = std::make_shared<TierTransfer>();
  transfer->bytes = memory.storage.nbytes();
  transfer->verifies = verify;
  transfer->memory = std::move(memory);
  transfer->expected = std::move(expected);
  transfer->asked_at = wall_microseconds();
  {
    const std::lock_guard lock(mutex_);
    transfer->number = next_++;
    all_[transfer->number] = transfer;
    puts_.push_back(transfer);
    if (on_streams_) any_to_drain_.store(true, std::memory_order_release);
  }
  (void)begin(transfer);
  called(Work::put, start);
  return transfer;
}

void TransferTier::called(Work work, double since) {
  const double spent = thread_microseconds() - since;
  const std::lock_guard lock(mutex_);
  account_.called(work, spent);
}

void TransferTier::finish_putting(const Shared& transfer, Lock& lock) {
  Stamp start = Stamp::now();
  if (transfer->state == State::to_put) start.cpu += do_put(transfer, lock, start).cpu;
  wait_past(State::putting, Work::put, *transfer, lock, start);
}

// Waits for whoever is busy with it. What this thread did itself is no CPU time of waiting, and so not since the stamp.
void TransferTier::wait_past(State busy, Work work, TierTransfer& transfer, Lock& lock, Stamp start) {
  changed_.wait(lock, [&] { return transfer.state != busy; });
  const Spent spent = start.since();
  account_.waited(spent.time);
  account_.called(work, spent.cpu);
}

void TransferTier::finish_put(const Shared& transfer) {
  Arbiter::expect_free("a value is put into a tier");
  TransferMemory memory;
  bool has_failed = false;
  {
    Lock lock(mutex_);
    if (transfer->is_unfinished_put()) finish_putting(transfer, lock);
    if (transfer->state == State::put) {
      memory = std::exchange(transfer->memory, {});
      transfer->become(State::stored);
    }
    has_failed = transfer->state == State::lost || transfer->state == State::failed;
  }
  if (memory.storage) free(std::move(memory));
  if (!on_streams_ || has_failed) (void)drain_completed();
}

// Begins the put, on streams, and frees the memory if the program has dropped it: then nobody but the transfer has it.
// Returns true if the transfer has none any more.
bool TransferTier::put_and_free(const Shared& transfer) {
  TransferMemory memory;
  {
    Lock lock(mutex_);
    if (transfer->state == State::to_put) (void)do_put(transfer, lock, Stamp::now());
    if (!transfer->is_in_memory()) return true;
    if (transfer->state != State::put || transfer->memory.storage.use_count() > 1) return false;
    memory = std::exchange(transfer->memory, {});
    transfer->become(State::stored);
  }
  free(std::move(memory));
  return true;
}

// ---- get -----------------------------------------------------------------------------------------------------------

void TransferTier::fetch(const Shared& transfer) {
  Arbiter::expect_free("a value is got from a tier");
  {
    const std::lock_guard lock(mutex_);
    if (!transfer->is_at_rest()) return;
  }
  TransferMemory memory{libtorch::new_storage(transfer->bytes, device_), libtorch::current_stream(device_)};
  if (meter::Header* const header = meter::header_of(*memory.storage.unsafeGetStorageImpl())) meter::track(*header);
  const double start = thread_microseconds();
  if (!begin_get(transfer, std::move(memory))) return;
  (void)begin(transfer);
  called(Work::get, start);
  if (!on_streams_) return;
  Lock lock(mutex_);
  finish_getting(transfer, lock);
}

// Returns false if somebody else has begun meanwhile.
bool TransferTier::begin_get(const Shared& transfer, TransferMemory memory) {
  const std::lock_guard lock(mutex_);
  if (!transfer->is_at_rest()) return false;
  transfer->memory = std::move(memory);
  transfer->become(State::to_get);
  transfer->asked_at = wall_microseconds();
  return true;
}

void TransferTier::finish_getting(const Shared& transfer, Lock& lock) {
  if (transfer->state != State::to_get && transfer->state != State::getting) return;
  Stamp start = Stamp::now();
  if (transfer->state == State::to_get) start.cpu += do_get(transfer, lock, start).cpu;
  wait_past(State::getting, Work::get, *transfer, lock, start);
}

c10::Storage TransferTier::contents(const Shared& transfer) {
  Arbiter::expect_free("a value is got from a tier");
  for (;;) {
    TransferMemory memory;
    bool reloaded = false;
    {
      Lock lock(mutex_);
      finish_getting(transfer, lock);
      if (transfer->failure) std::rethrow_exception(transfer->failure);
      reloaded = transfer->state == State::arrived;
      if (reloaded) {
        memory = std::exchange(transfer->memory, {});
        transfer->become(State::reloaded);
      } else if (transfer->is_in_memory()) {
        memory = transfer->memory;
      }
    }
    if (memory.storage) {
      use_here(memory, reloaded);
      if (reloaded) verify(*transfer, memory.storage);
      return std::move(memory.storage);
    }
    TransferMemory fresh{libtorch::new_storage(transfer->bytes, device_), libtorch::current_stream(device_)};
    (void)begin_get(transfer, std::move(fresh));
  }
}

void TransferTier::verify(TierTransfer& transfer, const c10::Storage& contents) {
  if (transfer.expected.empty() || (!device_.is_cpu() && libtorch::is_capturing(device_))) return;
  const std::vector<std::size_t> blocks = differences(transfer.expected, fingerprint_of(contents));
  if (!blocks.empty()) expect_no_failure();
  const std::lock_guard lock(mutex_);
  if (blocks.empty()) {
    if (transfer.state == State::reloaded) transfer.become(State::verified);
    return;
  }
  const MismatchError error(
      {.block = blocks.front(), .blocks = transfer.expected.size(), .reloaded_from = account_.costs().name});
  if (transfer.state == State::reloaded) transfer.become(State::failed);
  transfer.failure = std::make_exception_ptr(error);
  account_.failed(error.what());
  throw error;
}

void TransferTier::give_up_fetched(TierTransfer& transfer) {
  {
    const std::lock_guard lock(mutex_);
    if (!give_up(transfer)) return;
  }
  drain_later();
}

// Takes back the memory of what was fetched. Returns false if nothing was, or somebody is busy with it.
bool TransferTier::give_up(TierTransfer& transfer) {
  if (transfer.state != State::to_get && transfer.state != State::arrived) return false;
  return_memory(transfer);
  transfer.become(State::stored);
  return true;
}

bool TransferTier::give_up_fetched() {
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, transfer] : all_) any |= give_up(*transfer);
  }
  drain_later();
  return any;
}

void TransferTier::drop(const Shared& transfer) {
  const double start = thread_microseconds();
  bool has_contents = false;
  {
    const std::lock_guard lock(mutex_);
    if (transfer->is_busy()) {
      transfer->dropped = true;
      return;
    }
    put_aside_to_remove(transfer);
    has_contents = transfer->state == State::to_remove;
  }
  if (has_contents && begin(transfer)) called(Work::remove, start);
  drain_later();
}

// ---- all transfers -------------------------------------------------------------------------------------------------

void TransferTier::free(TransferMemory memory) {
  Arbiter::discard(std::move(memory.storage));
}

void TransferTier::use_here(const TransferMemory& memory, bool) {
  libtorch::use_here(memory.storage, memory.stream);
}

bool TransferTier::drain_completed() {
  if (!any_to_drain_.load(std::memory_order_acquire)) return false;
  if (on_streams_) Arbiter::expect_free("values are copied on streams");
  if (on_streams_ && libtorch::is_capturing(device_)) return false;  // nothing else may become a part of the graph
  std::vector<Shared> puts;
  std::vector<TransferMemory> returned;
  bool is_much = false;
  {
    const std::lock_guard lock(mutex_);
    if (on_streams_) puts.assign(puts_.begin(), puts_.end());
    returned.swap(returned_);
    is_much = on_streams_ && to_remove_.size() > many_transfers;
    any_to_drain_.store(!puts.empty(), std::memory_order_release);
  }
  bool any = !returned.empty();
  for (const Shared& transfer : puts) any |= put_and_free(transfer);
  for (TransferMemory& memory : returned) free(std::move(memory));
  if (is_much) remove_completed();
  if (!on_streams_) return any;
  learn_times(many_transfers);
  const std::lock_guard lock(mutex_);
  std::erase_if(puts_, [](const Shared& transfer) { return !transfer->is_in_memory(); });
  return any;
}

void TransferTier::drain_later() {
  if (!any_to_drain_.load(std::memory_order_acquire)) return;
  Arbiter::after([tier = shared_from_this()] { (void)tier->drain_completed(); });
}

bool TransferTier::finish_next_put() {
  if (drain_completed()) return true;
  if (on_streams_) return false;
  Arbiter::expect_free("a value is put into a tier");
  {
    Lock lock(mutex_);
    const Shared next = next_unfinished_put();
    if (!next) return false;
    finish_putting(next, lock);
  }
  (void)drain_completed();
  return true;
}

// Returns the one that is over next if somebody helps: the oldest, or, while somebody else is busy with that one, the
// next. Null if there is none.
TransferTier::Shared TransferTier::next_unfinished_put() {
  while (!puts_.empty() && !puts_.front()->is_unfinished_put()) puts_.pop_front();
  if (puts_.empty()) return nullptr;
  const bool another = puts_.size() > 1 && puts_[1]->state == State::to_put;
  return puts_[another && puts_[0]->state == State::putting ? 1 : 0];
}

void TransferTier::finish_all() {
  Arbiter::expect_free("transfers are waited for");
  (void)drain_completed();
  {
    Lock lock(mutex_);
    changed_.wait(lock, [&] { return busy_ == 0 && removing_ == 0; });
    std::erase_if(puts_, [](const Shared& transfer) { return !transfer->is_in_memory(); });
  }
  (void)drain_completed();
  if (!on_streams_) return;
  remove_completed();
  learn_times(1);
}

TransferTier::Shared TransferTier::oldest_to_remove() {
  while (!to_remove_.empty() && to_remove_.front()->state != State::to_remove) to_remove_.pop_front();
  return to_remove_.empty() ? nullptr : to_remove_.front();
}

// Removes, on streams, what the device does not copy any more.
void TransferTier::remove_completed() {
  std::vector<std::pair<Shared, std::shared_ptr<const CopySpan>>> candidates;
  Lock lock(mutex_);
  for (const Shared& transfer : to_remove_) {
    if (transfer->state == State::to_remove) candidates.emplace_back(transfer, transfer->contents->copied);
  }
  for (const auto& [transfer, copied] : candidates) {
    lock.unlock();
    const bool over = !copied || copied->to.query();
    lock.lock();
    if (over && transfer->state == State::to_remove) (void)do_remove(transfer, lock, Stamp::now());
  }
  std::erase_if(to_remove_, [](const Shared& transfer) { return transfer->state != State::to_remove; });
}

bool TransferTier::make_room_until(c10::function_ref<bool()> fits) {
  while (!fits()) {
    Lock lock(mutex_);
    const Shared oldest = oldest_to_remove();
    if (!oldest) {
      changed_.wait(lock, [&] { return removing_ == 0; });  // what others remove is room, too
      lock.unlock();
      reclaim_room();
      return fits();
    }
    (void)do_remove(oldest, lock, Stamp::now());
  }
  return true;
}

void TransferTier::lose_all(const std::string& why) {
  std::vector<std::unique_ptr<TierContents>> ending;
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return busy_ == 0 && removing_ == 0; });
  for (const auto& [number, transfer] : all_) {
    if (!transfer->contents) continue;
    ending.push_back(std::move(transfer->contents));
    if (transfer->state == State::to_remove) transfer->become(State::removed);
    if (!transfer->is_at_rest() && !is_fetched(transfer->state)) continue;
    return_memory(*transfer);
    fail(*transfer, State::lost, {{}, why, nullptr});
  }
  std::erase_if(all_, [](const auto& one) { return one.second->state == State::removed; });
  lock.unlock();
}

TierCosts TransferTier::costs() const {
  const std::lock_guard lock(mutex_);
  return account_.costs();
}

TierTotals TransferTier::totals() const {
  const std::lock_guard lock(mutex_);
  TierTotals totals = account_.totals();
  totals.peak = room_.peak();
  return totals;
}

// ---- costs ---------------------------------------------------------------------------------------------------------

// What a value takes shows with small ones, what a byte takes with large ones. The first ones are not counted: they
// make the tables of a file system, and ours, or the streams of a device.
void TransferTier::measure(std::span<const std::size_t> sizes, c10::function_ref<c10::Storage(std::size_t)> memory) {
  constexpr int times = 4;
  for (int i = -1; i < times; ++i) {
    for (const std::size_t bytes : sizes) {
      go_there_and_back(memory(bytes));
    }
    learn_times(1);
    if (i < 0) account_.reset();
  }
  account_.reset_totals();
  room_.reset_peak();
}

// Leaves the work to the thread, so that it is measured, unless there is none.
void TransferTier::go_there_and_back(c10::Storage memory) {
  constexpr std::chrono::milliseconds longest(200);
  const auto wait_for_thread = [&](Lock& lock, c10::function_ref<bool()> done) {
    if (!on_streams_) changed_.wait_for(lock, longest, [&] { return done(); });
  };
  const Shared transfer = begin_put({memory, libtorch::current_stream(device_)}, {}, false);
  {
    Lock lock(mutex_);
    wait_for_thread(lock, [&] { return !transfer->is_unfinished_put(); });
  }
  finish_put(transfer);
  const double start = thread_microseconds();
  if (begin_get(transfer, {memory, libtorch::current_stream(device_)})) {
    (void)begin(transfer);
    called(Work::get, start);
  }
  {
    Lock lock(mutex_);
    wait_for_thread(lock, [&] { return transfer->state != State::to_get; });
    finish_getting(transfer, lock);
  }
  const std::exception_ptr failure = transfer->failure;
  drop(transfer);
  {
    Lock lock(mutex_);
    wait_for_thread(lock, [&] { return transfer->state == State::removed && removing_ == 0; });
    if (transfer->state == State::to_remove) (void)do_remove(transfer, lock, Stamp::now());
  }
  (void)drain_completed();
  if (failure) std::rethrow_exception(failure);
}

// ---- fork ----------------------------------------------------------------------------------------------------------

void TransferTier::lock_for_fork() {
  mutex_.lock();
  before_fork();
  room_.before_fork();
}

void TransferTier::unlock_in_parent() {
  room_.after_fork_in_parent();
  after_fork_in_parent();
  mutex_.unlock();
}

// Gives back what other threads were busy with: there are none any more.
void TransferTier::unlock_in_child() {
  busy_ = removing_ = 0;
  Bytes settled = 0;
  for (const auto& [number, transfer] : all_) {
    if (transfer->state == State::putting) transfer->become(State::to_put);
    if (transfer->state == State::getting) transfer->become(State::to_get);
    if (transfer->contents) settled += transfer->contents->mark_at_rest_after_fork();
  }
  after_fork_in_child();
  room_.after_fork_in_child(settled);
  new (&changed_) std::condition_variable;  // not destroyed before: that would wait for those who waited on it
  mutex_.unlock();
}

}  // namespace reprise::internal
