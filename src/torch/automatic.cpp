#include "torch/automatic.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "torch/recorder.h"

namespace reprise::automatic {
namespace {

struct Everything {
  SessionOptions options;
  std::function<void()> on_first_thread;
  std::mutex mutex;
  std::vector<std::unique_ptr<Session>> sessions;  // outlive their threads, for summaries
};
// Never destroyed: threads may end after main.
std::atomic<Everything*> everything = nullptr;

// What a thread has of it. A thread that is about to end closes its step.
struct Here {
  Session* session = nullptr;
  std::optional<Step> step;
  bool meeting = false;
};
thread_local Here here;

Session& new_session(Everything& all) {
  const std::scoped_lock lock(all.mutex);
  if (all.sessions.empty() && all.on_first_thread) all.on_first_thread();
  return *all.sessions.emplace_back(std::make_unique<Session>(all.options));
}

}  // namespace

void begin(const SessionOptions& options, std::function<void()> on_first_thread) {
  auto* const all = new Everything;
  all->options = options;
  all->on_first_thread = std::move(on_first_thread);
  everything.store(all, std::memory_order_release);
}

void meet_thread() {
  Everything* const all = everything.load(std::memory_order_acquire);
  if (!all || here.session || here.meeting) return;
  here.meeting = true;  // also for good, if no session can be had: it is said once
  here.session = &new_session(*all);
  here.step.emplace(here.session->step());
  begin_period_if_over();
  this_thread().recording->observing = false;
  this_thread().recording->unplannable = "its first operators were not seen";
}

void end_step() {
  if (!here.step) return;
  here.step->close();
  here.step.emplace(here.session->step());
}

Session* busiest() {
  Everything* const all = everything.load(std::memory_order_acquire);
  if (!all) return nullptr;
  const std::scoped_lock lock(all->mutex);
  Session* most = nullptr;
  for (const auto& session : all->sessions) {
    if (!most || session->summary().steps > most->summary().steps) most = session.get();
  }
  return most;
}

}  // namespace reprise::automatic
