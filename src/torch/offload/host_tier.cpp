#include "torch/offload/host_tier.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "reprise/torch/errors.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/meter.h"
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

class PinnedContents final : public TierContents {
 public:
  // `charged`: of the room, those that count in the budget of the CPU.
  PinnedContents(Reservation room, Bytes charged) : charged_(charged), room_(std::move(room)) {}
  ~PinnedContents() override {
    memory = c10::Storage();
    meter::discharge(charged_);
  }

  [[nodiscard]] Bytes mark_at_rest_after_fork() override {
    room_.mark_at_rest_after_fork();
    return room_.bytes();
  }

  c10::Storage memory;

 private:
  const Bytes charged_;
  Reservation room_;
};

}  // namespace

std::shared_ptr<HostTransferTier> HostTransferTier::open(Bytes bytes, const CountedDevice& device, bool in_cpu) {
  constexpr std::size_t small = 16 << 10, large = 1 << 20;
  std::shared_ptr<HostTransferTier> tier(new HostTransferTier(bytes, device, in_cpu));
  const auto most = static_cast<std::size_t>(bytes);
  try {
    (void)libtorch::new_pinned_storage(1, device.device());
    tier->measure({{std::min(small, most), std::min(large, most)}},
                  [&](std::size_t size) { return libtorch::new_storage(size, device.device()); });
  } catch (const SessionError&) {  // there is no room now: what is guessed will do until values go there
  } catch (const c10::Error& error) {
    throw BadOption("[session] option host: " + device.name() +
                    " cannot copy to pinned memory of the host: " + error.what_without_backtrace());
  }
  ValueTiers::of_process().add(tier);
  return tier;
}

HostTransferTier::HostTransferTier(Bytes bytes, const CountedDevice& device, bool in_cpu)
    : TransferTier(
          device.device(), Runs::on_streams, bytes,
          {.name = "host", .capacity = bytes, .duplex = true, .least = 512},  // what accelerators give at least
          TierAccount::Learns::time_of_streams),
      above_(device),
      in_cpu_(in_cpu),
      puts_on_(another_stream(device.device())),
      gets_on_(another_stream(device.device(), puts_on_)) {}

HostTransferTier::~HostTransferTier() {
  try {
    finish_all();
  } catch (const std::exception&) {  // of a kernel that failed: who waits for the device is told
  }
}

void HostTransferTier::report(Summary& summary, const TierTotals& before) const {
  const TierTotals now = totals();
  summary.host_put_last_step = now.put - before.put;
  summary.host_got_last_step = now.got - before.got;
  summary.host_peak = now.peak;
}

// ---- copies --------------------------------------------------------------------------------------------------------

c10::Stream HostTransferTier::here() const {
  return libtorch::current_stream_of_accelerator(device_);
}

std::shared_ptr<const CopySpan> HostTransferTier::copy(const c10::Storage& to, const c10::Storage& from, c10::Stream on,
                                                       c10::Stream after, const CopySpan* and_after) {
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
  const std::lock_guard lock(mutex_);
  timed_.push_back({span, from.nbytes(), on == puts_on_ ? Work::put : Work::get});
  return span;
}

// In the budget of the CPU they have at most half of what the program leaves of it: it may need more at any time, and
// copies do not give way to it.
bool HostTransferTier::may_take(Bytes bytes) const {
  if (!in_cpu_) return true;
  const Bytes used = room_.used(), others = meter::live() - used;
  return used + bytes <= (meter::ceiling() - others) / 2 && meter::charge(bytes);
}

std::unique_ptr<TierContents> HostTransferTier::store(TierTransfer& transfer) {
  const auto bytes = static_cast<Bytes>(transfer.bytes);
  std::unique_ptr<PinnedContents> pinned;
  const bool fits = make_room_until([&] {
    if (!room_.fits(bytes) || !may_take(bytes)) return false;
    std::optional<Reservation> room = room_.try_reserve(bytes);
    if (!room && in_cpu_) meter::discharge(bytes);
    if (!room) return false;
    room->hold();
    pinned = std::make_unique<PinnedContents>(std::move(*room), in_cpu_ ? bytes : 0);
    return true;
  });
  if (!fits) {
    throw SessionError("[session] option host.bytes is " + std::to_string(room_.budget()) + ", and " +
                       std::to_string(bytes) + " more do not fit");
  }
  const TransferMemory& from = transfer.memory;
  pinned->memory = libtorch::new_pinned_storage(transfer.bytes, device_);
  pinned->copied = copy(pinned->memory, from.storage, puts_on_, from.stream.value_or(here()), nullptr);
  return pinned;
}

void HostTransferTier::load(TierTransfer& transfer) {
  auto& pinned = static_cast<PinnedContents&>(*transfer.contents);
  const TransferMemory& to = transfer.memory;
  pinned.copied = copy(to.storage, pinned.memory, gets_on_, to.stream.value_or(here()), pinned.copied.get());
}

// What is given to the stream of the memory, and by this thread, from now on waits for the copy.
void HostTransferTier::free(TransferMemory memory) {
  if (memory.copied) {
    const c10::Stream here = this->here();
    if (memory.stream && *memory.stream != here) memory.copied->to.block(*memory.stream);
    memory.copied->to.block(here);
  }
  Arbiter::discard(std::move(memory.storage));
}

void HostTransferTier::use_here(const TransferMemory& memory, bool reloaded) {
  if (!reloaded) return TransferTier::use_here(memory, reloaded);
  const c10::Stream here = this->here();
  memory.copied->to.block(here);
  if (memory.stream == here) return;
  c10::impl::VirtualGuardImpl(device_.type()).recordDataPtrOnStream(memory.storage.data_ptr(), here);
}

void HostTransferTier::expect_no_failure() {
  const c10::impl::VirtualGuardImpl device(device_.type());
  for (const c10::Stream& stream : {puts_on_, gets_on_, here()}) device.synchronizeStream(stream);
}

std::exception_ptr HostTransferTier::lost_error(const std::string& why) const {
  return std::make_exception_ptr(SessionError(why));
}

void HostTransferTier::learn_times(std::size_t at_least) {
  constexpr std::size_t most = 256;  // a device that is far behind is asked about the newest
  constexpr double microseconds = 1000;
  std::vector<Timed> timed, pending;
  {
    const std::lock_guard lock(mutex_);
    if (timed_.size() < at_least) return;
    timed.swap(timed_);
  }
  for (Timed& one : timed) {
    if (!one.span->to.query()) {
      pending.push_back(std::move(one));
      continue;
    }
    const double seen = microseconds * one.span->from.elapsedTime(one.span->to);
    const std::lock_guard lock(mutex_);
    account_.took(one.work, one.bytes, seen);
  }
  const std::lock_guard lock(mutex_);
  timed_.insert(timed_.begin(), std::make_move_iterator(pending.begin()), std::make_move_iterator(pending.end()));
  if (timed_.size() > most) timed_.erase(timed_.begin(), timed_.end() - most);
}

}  // namespace reprise::internal
