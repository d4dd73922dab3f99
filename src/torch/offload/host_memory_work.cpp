// The work of memory of the host: what is done with one transfer, and with its room.
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "reprise/store/store.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
#include "torch/offload/host_memory.h"

namespace reprise::internal {

std::shared_ptr<CopySpan> HostMemory::copy(const c10::Storage& to, const c10::Storage& from, c10::Stream on,
                                           c10::Stream after, const CopySpan* and_after) const {
  const c10::DeviceType type = on.device_type();
  c10::Event ready(type);
  ready.record(after);
  ready.block(on);
  if (and_after) and_after->to.block(on);
  auto span = std::make_shared<CopySpan>(
      CopySpan{c10::Event(type, c10::EventFlag::BACKEND_DEFAULT), c10::Event(type, c10::EventFlag::BACKEND_DEFAULT)});
  span->from.record(on);
  {
    const c10::StreamGuard there(on);
    libtorch::copy_beside(to, from);
  }
  span->to.record(on);
  return span;
}

void HostMemory::wait_on_device(const CopySpan& span, const std::optional<c10::Stream>& stream) const {
  const c10::Stream here = this->here();
  if (stream && *stream != here) span.to.block(*stream);
  span.to.block(here);
}

void HostMemory::begin_put(HostTransfer& transfer) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return transfer.state != State::putting; });
  if (transfer.state != State::to_put) return;
  transfer.state = State::putting;
  lock.unlock();
  c10::Storage there;
  std::shared_ptr<CopySpan> span;
  std::string error = "[session] option host.bytes is " + std::to_string(*terms_.capacity) + ", and " +
                      std::to_string(transfer.bytes) + " more do not fit";
  try {
    there = room_for(transfer.bytes);
    if (there) span = copy(there, transfer.from, puts_, transfer.made_on.value_or(here()));
  } catch (const std::exception& failure) {
    error = failure.what();
    if (there) give_room_back(static_cast<Bytes>(transfer.bytes));
  }
  c10::Storage memory;
  lock.lock();
  if (span) {
    transfer.there = std::move(there);
    transfer.put = span;
    transfer.state = State::there;
    totals_.put += static_cast<Bytes>(transfer.bytes);
    measured_.push_back({std::move(span), transfer.bytes, true});
    if (transfer.left) give_up_put(transfer);
  } else {
    memory = std::exchange(transfer.from, c10::Storage());
    transfer.state = State::lost;
    transfer.error = std::move(error);
  }
  changed_.notify_all();
  lock.unlock();
  Arbiter::discard(std::move(memory));
}

void HostMemory::finish_put(HostTransfer& transfer) {
  Arbiter::expect_free("a value is copied to the host");
  begin_put(transfer);
  c10::Storage memory;
  {
    const std::lock_guard lock(mutex_);
    memory = std::exchange(transfer.from, c10::Storage());
  }
  if (!memory) return;
  wait_on_device(*transfer.put, transfer.made_on);
  Arbiter::discard(std::move(memory));
}

void HostMemory::fetch(const Transfer& transfer) {
  Arbiter::expect_free("a value is copied from the host");
  begin_put(*transfer);
  {
    const std::lock_guard lock(mutex_);
    if (transfer->state != State::there || transfer->from || transfer->got) return;
  }
  const c10::Stream for_whom = here();
  c10::Storage memory = libtorch::new_storage(transfer->bytes, device_.device());
  if (meter::Header* const header = meter::header_of(*memory.unsafeGetStorageImpl())) meter::track(*header);
  auto span = copy(memory, transfer->there, gets_, for_whom, transfer->put.get());
  const std::lock_guard lock(mutex_);
  totals_.got += static_cast<Bytes>(transfer->bytes);
  measured_.push_back({span, transfer->bytes, false});
  if (transfer->got) {  // somebody else was as fast
    given_up_.push_back({std::move(memory), for_whom, std::move(span)});
    return;
  }
  transfer->got = std::move(memory);
  transfer->got_for = for_whom;
  transfer->get = std::move(span);
  std::erase_if(fetched_, [](const auto& one) { return one.expired(); });
  fetched_.push_back(transfer);
}

c10::Storage HostMemory::contents(const Transfer& transfer) {
  for (;;) {
    fetch(transfer);
    c10::Storage memory;
    std::shared_ptr<CopySpan> span;
    {
      const std::lock_guard lock(mutex_);
      if (transfer->state == State::lost) throw DiskError(transfer->error);
      memory = transfer->from ? transfer->from : std::exchange(transfer->got, c10::Storage());
      if (!transfer->from) span = transfer->get;
    }
    if (!memory) continue;  // it was given up meanwhile
    if (!span) {
      libtorch::use_here(memory, transfer->made_on);
      return memory;
    }
    span->to.block(here());
    if (transfer->got_for != here()) {
      c10::impl::VirtualGuardImpl(device_.device().type()).recordDataPtrOnStream(memory.data_ptr(), here());
    }
    return memory;
  }
}

// ---- room ----------------------------------------------------------------------------------------------------------

c10::Storage HostMemory::room_for(std::size_t bytes) {
  while (!take_room(static_cast<Bytes>(bytes))) {
    if (!wait_for_room()) return {};
  }
  try {
    return libtorch::new_pinned_storage(bytes, device_.device());
  } catch (...) {
    give_room_back(static_cast<Bytes>(bytes));
    throw;
  }
}

// In the budget of the CPU they have at most half of what the program leaves of it: it may need more at any time, and
// copies do not give way to it.
bool HostMemory::take_room(Bytes bytes) {
  {
    const std::lock_guard lock(mutex_);
    const Bytes others = meter::live() - used_;
    if (bytes > *terms_.capacity - used_) return false;
    if (in_cpu_ && used_ + bytes > (meter::ceiling() - others) / 2) return false;
    used_ += bytes;
    totals_.peak = std::max(totals_.peak, used_);
  }
  if (!in_cpu_ || meter::charge(bytes)) return true;
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
  return false;
}

void HostMemory::give_room_back(Bytes bytes) {
  if (in_cpu_) meter::discharge(bytes);
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
}

// Waits for the oldest copy whose bytes leave when it is over. False: there is none.
bool HostMemory::wait_for_room() {
  Transfer oldest;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(left_.begin(), left_.end(), [](const Transfer& one) { return static_cast<bool>(one->there); });
    if (found == left_.end()) return false;
    oldest = *found;
  }
  oldest->put->to.synchronize();
  if (oldest->get) oldest->get->to.synchronize();
  free_what_left();
  return true;
}

}  // namespace reprise::internal
