#include "reprise/torch/checkpoint.h"

#include <ATen/core/grad_mode.h>

#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include "torch/api/checkpoint_places.h"
#include "torch/api/installed.h"
#include "torch/evict/writes.h"
#include "torch/hooks/recorder.h"
#include "torch/memory/arbiter.h"
#include "torch/session/site.h"
#include "torch/session/thread_state.h"
#include "torch/values/regions.h"

namespace reprise {
using namespace internal;
namespace {

// Whether the values of this thread's operators are evicted and replayed by a recording that is there already: that
// of a session with a budget or a plan, or of a region around this one.
bool is_recorded_for_replay(ThreadState& here) {
  if (!here.source) return false;
  begin_pass_if_over();
  if (!here.recording) return false;
  const Arbiter lock;
  return here.recording->values().may_evict() || here.recording->plan();
}

}  // namespace

// What a region found and leaves behind.
struct internal::RegionBefore {
  std::shared_ptr<Site> site;  // of a recording of its own; nullptr: it has none
  std::shared_ptr<RecordingOwner> source;
  std::shared_ptr<Recording> recording;
  bool watched = false;
  int exceptions = 0;
  Bytes evicted = 0;
};

CheckpointSite::CheckpointSite() : site_(std::make_shared<Site>()) {
  need_installed();
}
CheckpointSite::~CheckpointSite() = default;

CheckpointRegion::CheckpointRegion(CheckpointSite& site) {
  ThreadState& here = this_thread();
  if (!at::GradMode::is_enabled() || writes::operators_under_way() > 0) return;
  before_ = std::make_unique<RegionBefore>();
  before_->evicted = regions().evicted;
  if (!is_recorded_for_replay(here)) {
    site.site_->look_for_devices();
    before_->site = site.site_;
    before_->exceptions = std::uncaught_exceptions();
    before_->watched = here.operators.has_value();
    before_->source = std::exchange(here.source, site.site_);
    before_->recording = std::move(here.recording);
    const Arbiter lock;
    here.recording = site.site_->begin_pass();
  }
  watch_operators(Watch::on);
  ++regions().open;
}

CheckpointRegion::~CheckpointRegion() {
  if (!before_) return;
  --regions().open;
  if (!before_->site) return;
  ThreadState& here = this_thread();
  const std::shared_ptr<Recording> own = std::move(here.recording);
  here.recording = std::move(before_->recording);
  here.source = std::move(before_->source);
  watch_operators(before_->watched ? Watch::on : Watch::off);
  const bool thrown = std::uncaught_exceptions() > before_->exceptions;
  const Arbiter lock;
  if (own && !thrown) before_->site->end_region(*own);
}

CheckpointSite& internal::site_at(const std::source_location& place, const void* types) {
  using Key = std::tuple<std::string, std::uint_least32_t, std::uint_least32_t, const void*>;
  static auto& all = *new std::map<Key, CheckpointSite>;
  const std::lock_guard lock(checkpoint_places_mutex);
  return all[{place.file_name(), place.line(), place.column(), types}];
}

Bytes CheckpointRegion::evicted() const {
  return before_ ? regions().evicted - before_->evicted : 0;
}

}  // namespace reprise
