#include "torch/hooks/automatic.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "torch/libtorch/error_translation.h"
#include "torch/memory/arbiter.h"
#include "torch/session/session_state.h"
#include "torch/session/thread_state.h"
#include "torch/values/device_options.h"

namespace reprise::internal::automatic {
namespace {

// The program has no session to ask.
constexpr const char* try_without_budget =
    "run once without a budget and with --trace step.json, and `reprise curve step.json` says which budgets will do";
constexpr BudgetAdvice for_commands = {try_without_budget, try_without_budget};

// A session, and what it came to. It belongs to one thread after the other.
struct Watched {
  Session session;
  Summary summary;         // up to the last step that has ended
  std::int64_t steps = 0;  // that have ended: without those that threads had just begun when they ended
};

struct Everything {
  SessionOptions options;
  std::vector<std::unique_ptr<Watched>> sessions;
  std::vector<Watched*> idle;  // whose threads have ended; has room for all
};
// Never destroyed: threads may end after main.
std::atomic<Everything*> everything = nullptr;
constinit std::mutex mutex;  // of what is in it, but for the options

// The one whose thread ended last: most likely the next one does the same.
Watched& session_for_new_thread(Everything& all) {
  const std::scoped_lock lock(mutex);
  if (all.idle.empty()) {
    all.idle.reserve(all.sessions.size() + 1);
    Watched& fresh = *all.sessions.emplace_back(new Watched{Session(all.options), {}});
    fresh.summary = fresh.session.summary();
    return fresh;
  }
  Watched& taken_over = *all.idle.back();
  all.idle.pop_back();
  return taken_over;
}

void raise_peak(DeviceSummary& device, const DeviceSummary& seen) {
  device.peak = std::max(device.peak, seen.peak);
}

// What a thread has of it. A thread that is about to end closes its step and gives its session back.
struct Here {
  Watched* watched = nullptr;
  std::optional<Step> step;

  Here() = default;
  ~Here();
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;
};
thread_local bool over = false;  // there is no `here` on this thread any more
thread_local Here here;

Here::~Here() {
  over = true;
  if (watched) SessionInside::of(watched->session).step_failed();  // it has just begun, and measures nothing
  step.reset();
  if (!watched) return;
  const std::scoped_lock lock(mutex);
  everything.load(std::memory_order_acquire)->idle.push_back(watched);
}

// The devices themselves are looked for when there are tensors.
void check_devices(const SessionOptions& options) try {
  if (!options.device.empty()) check_device_name(options.device);
  for (const DeviceBudget& budget : options.budgets) check_device_name(budget.device);
} catch (const BadOption& error) {
  throw BadOption(std::string(error.what()) +
                  " when the program begins. One that gets its name later is called privateuseone");
}

}  // namespace

void begin(const SessionOptions& options) {
  check_form_of_budgets(options);
  check_host(options);
  check_devices(options);
  SessionOptions without_devices = options;
  without_devices.device.clear();
  without_devices.budgets.clear();
  without_devices.host = {};
  { const Session probe(std::move(without_devices)); }
  auto* const all = new Everything;
  all->options = options;
  everything.store(all, std::memory_order_release);
  set_budget_advice(&for_commands);
}

bool is_on() {
  return everything.load(std::memory_order_acquire) != nullptr;
}

void meet_thread() {
  Everything* const all = everything.load(std::memory_order_acquire);
  if (!all || over || here.watched) return;
  here.watched = &session_for_new_thread(*all);
  here.step.emplace(here.watched->session.step());
  ThreadState& thread = this_thread();
  thread.pass_ended = end_step;
  if (!thread.source) return;  // without a budget, most steps are not recorded
  thread.met_inside = true;
  if (has_no_device(thread)) {
    thread.infers_device = InfersDevice::in_the_middle;
    return;
  }
  const Arbiter lock;
  thread.recording = thread.step->begin_pass_in_the_middle();
}

void end_step() {
  if (over || !here.step) return;
  here.step->close();
  Summary summary = here.watched->session.summary();
  {
    const std::scoped_lock lock(mutex);
    summary.steps = ++here.watched->steps;
    here.watched->summary = std::move(summary);
  }
  here.step.emplace(here.watched->session.step());
}

std::optional<Outcome> outcome() {
  Everything* const all = everything.load(std::memory_order_acquire);
  if (!all) return std::nullopt;
  const std::scoped_lock lock(mutex);
  const Watched* most = nullptr;
  for (const auto& one : all->sessions) {
    if (!most || one->steps > most->steps) most = one.get();
  }
  if (!most) return std::nullopt;
  Outcome result{most->summary, most->session.trace(), most->session.plan()};
  // Also of the step that has not ended: the optimizer's part may need most.
  const Summary now = most->session.summary();
  for (std::size_t i = 0; i < std::min(result.summary.devices.size(), now.devices.size()); ++i) {
    result.summary.devices[i].live = now.devices[i].live;
    raise_peak(result.summary.devices[i], now.devices[i]);
  }
  result.summary.resident = now.resident;
  for (const auto& one : all->sessions) {
    if (one.get() == most) continue;
    const Summary& other = one->summary;
    for (std::size_t i = 0; i < std::min(result.summary.devices.size(), other.devices.size()); ++i) {
      raise_peak(result.summary.devices[i], other.devices[i]);
    }
    result.summary.steps += other.steps;
    result.summary.traces += other.traces;
    result.summary.plans += other.plans;
    result.summary.divergences += other.divergences;
    result.summary.notes += other.notes;
    result.summary.verified += other.verified;
  }
  return result;
}

void lock_for_fork() {
  mutex.lock();
}
void unlock_after_fork() {
  mutex.unlock();
}

}  // namespace reprise::internal::automatic
