#include "reprise/torch/checkpoint.h"

#include <ATen/core/grad_mode.h>

#include <exception>

#include "torch/recorder.h"
#include "torch/session_state.h"

namespace reprise {
using namespace internal;
namespace {

// Whether the values of this thread's operators are forgotten and replayed by a recording that is there already: that
// of a session with a budget or a plan, or of a region around this one.
bool is_recorded_for_replay(ThreadState& here) {
  if (!here.session) return false;
  begin_period_if_over();
  const Arbiter lock;
  return here.recording->keep_outside || here.recording->executor;
}

}  // namespace

// What a region found and leaves behind.
struct internal::RegionBefore {
  std::shared_ptr<SessionState> site;  // of a recording of its own; nullptr: it has none
  std::shared_ptr<SessionState> session;
  std::shared_ptr<Recording> recording;
  bool watched = false;
  int exceptions = 0;
  Bytes forgotten = 0;
};

CheckpointSite::CheckpointSite() {
  SessionOptions options;
  options.name = "checkpoint";
  state_ = std::make_shared<SessionState>(std::move(options));
  state_->region = true;
}
CheckpointSite::~CheckpointSite() = default;

CheckpointRegion::CheckpointRegion(CheckpointSite& site) {
  ThreadState& here = this_thread();
  if (!at::GradMode::is_enabled() || here.inside > 0) return;
  before_ = std::make_unique<RegionBefore>();
  before_->forgotten = here.forgotten;
  if (!is_recorded_for_replay(here)) {
    before_->site = site.state_;
    before_->exceptions = std::uncaught_exceptions();
    before_->watched = here.operators.has_value();
    before_->session = std::exchange(here.session, site.state_);
    before_->recording = std::move(here.recording);
    const Arbiter lock;
    here.recording = site.state_->begin_period();
  }
  watch_operators(true);
  ++here.forgetting;
}

CheckpointRegion::~CheckpointRegion() {
  if (!before_) return;
  ThreadState& here = this_thread();
  --here.forgetting;
  if (!before_->site) return;
  const std::shared_ptr<Recording> own = std::move(here.recording);
  here.recording = std::move(before_->recording);
  here.session = std::move(before_->session);
  watch_operators(before_->watched);
  const bool thrown = std::uncaught_exceptions() > before_->exceptions;
  const Arbiter lock;
  if (own && !thrown) before_->site->end_region(*own);
}

Bytes CheckpointRegion::forgotten() const {
  return before_ ? this_thread().forgotten - before_->forgotten : 0;
}

}  // namespace reprise
