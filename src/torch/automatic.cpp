#include "torch/automatic.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "torch/recorder.h"

namespace reprise::automatic {
namespace {

// Outlives its thread.
struct Watched {
  Session session;
  Summary summary;  // up to the last step that has ended
};

struct Everything {
  SessionOptions options;
  std::mutex mutex;  // of what follows
  std::vector<std::unique_ptr<Watched>> threads;
};
// Never destroyed: threads may end after main.
std::atomic<Everything*> everything = nullptr;

// What a thread has of it. A thread that is about to end closes its step.
struct Here {
  Watched* watched = nullptr;
  std::optional<Step> step;
};
thread_local Here here;

Watched& new_thread(Everything& all) {
  const std::scoped_lock lock(all.mutex);
  return *all.threads.emplace_back(new Watched{Session(all.options), {}});
}

}  // namespace

void begin(const SessionOptions& options) {
  auto* const all = new Everything;
  all->options = options;
  everything.store(all, std::memory_order_release);
}

bool is_on() {
  return everything.load(std::memory_order_acquire) != nullptr;
}

void meet_thread() {
  Everything* const all = everything.load(std::memory_order_acquire);
  if (!all || here.watched) return;
  here.watched = &new_thread(*all);
  here.step.emplace(here.watched->session.step());
  begin_period_if_over();
  ThreadState& thread = this_thread();
  thread.met_inside = true;
  thread.recording->observing = false;
  thread.recording->unplannable = "its first operators were not seen";
}

void end_step() {
  if (!here.step) return;
  here.step->close();
  Summary summary = here.watched->session.summary();
  {
    const std::scoped_lock lock(everything.load(std::memory_order_acquire)->mutex);
    here.watched->summary = std::move(summary);
  }
  here.step.emplace(here.watched->session.step());
}

std::optional<Outcome> outcome() {
  Everything* const all = everything.load(std::memory_order_acquire);
  if (!all) return std::nullopt;
  const std::scoped_lock lock(all->mutex);
  const Watched* most = nullptr;
  for (const auto& thread : all->threads) {
    if (!most || thread->summary.steps > most->summary.steps) most = thread.get();
  }
  if (!most) return std::nullopt;
  Outcome result{most->summary, most->session.trace(), most->session.plan()};
  // Of the step that has not ended, too: the optimizer's part may need most.
  const Summary now = most->session.summary();
  result.summary.peak = std::max(result.summary.peak, now.peak);
  result.summary.live = now.live;
  result.summary.resident = now.resident;
  return result;
}

}  // namespace reprise::automatic
