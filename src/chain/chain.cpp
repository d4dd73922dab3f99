#include "reprise/chain/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "reprise/plan/online_chain.h"
#include "reprise/trace/error.h"

namespace reprise {

const char* name(ChainProgress::Phase phase) {
  switch (phase) {
    case ChainProgress::Phase::forward: return "forward";
    case ChainProgress::Phase::replay: return "replay";
    case ChainProgress::Phase::backward: return "backward";
  }
  return "?";
}

ChainLayers::ChainLayers(int count) : known_(true) {
  if (count < 0) throw BadOption(fmt::format("[chain] layers is {}: it cannot be negative", count));
  numbers_.resize(count);
  std::iota(numbers_.begin(), numbers_.end(), 0);
}

namespace {

// An unknown number of layers with everything remembered.
class RememberAll : public ChainDecisions {
 public:
  Decision reached(double) override {
    remembered_.push_back(static_cast<Id>(remembered_.size()));
    return {true, std::nullopt};
  }
  ChainSteps backward_steps() override {
    const Id layers = static_cast<Id>(remembered_.size()) - 1;
    return reverse_from(remembered_, layers, layers + 1);
  }

 private:
  std::vector<Id> remembered_{0};
};

void forget_tiers(ChainForm& form) {
  form.tiers.clear();
  form.packed.reset();
  form.disk.reset();
}

}  // namespace

// ---- settings ----

ChainBase::ChainBase(ChainLayers layers, bool tapes)
    : layers_(std::move(layers)), schedule_(layers_.known() ? schedule::every() : schedule::online(64)) {
  form_ = equal_layers(layers_.size());
  form_.tapes = tapes;
}

ChainBase::~ChainBase() = default;

void ChainBase::schedule(SchedulePointer schedule) {
  if (!schedule) throw BadOption("[chain] schedule is null");
  schedule_ = std::move(schedule);
  script_.reset();
}

void ChainBase::sizes(ChainForm form) {
  if (form.size() != layers_.size() || !layers_.known()) {
    throw BadOption(fmt::format("[chain] sizes are of {} layers, the chain has {}", form.size(),
                                layers_.known() ? std::to_string(layers_.size()) : "an unknown number"));
  }
  form.tapes = form_.tapes;
  use_measured(std::move(form));
}

void ChainBase::use_measured(ChainForm form, std::span<const PlaceTerms> packed, std::span<const PlaceTerms> disk) {
  form_ = std::move(form);
  forget_tiers(form_);
  const auto enter = [&](Id tier, std::span<const PlaceTerms> terms) {
    for (std::size_t k = 0; k < terms.size(); ++k) {
      TierEntry& entry = form_.tiers[tier].entries[k];
      entry = {entry.value, terms[k].bytes, terms[k].put_seconds, terms[k].get_seconds};
    }
  };
  match_tiers();
  if (form_.packed) enter(*form_.packed, packed);
  if (form_.disk) enter(*form_.disk, disk);
  sizes_known_ = true;
  script_.reset();
  plain_script_.reset();
}

void ChainBase::use_codec(const Codec* codec) {
  places_.codec(codec);
  forget_tiers(form_);
  script_.reset();
}

void ChainBase::use_disk(DiskTier tier, std::optional<Bytes> transit, FileSystem* files) {
  places_.disk(std::move(tier), transit, files);
  script_.reset();
}

// ---- scripts ----

// The tiers are those of the settings, and name every state.
void ChainBase::match_tiers() {
  const bool packed = enabled_ && places_.codec(), disk = enabled_ && places_.has_disk();
  const auto entries = static_cast<std::size_t>(layer_count()) + 1;
  const bool complete =
      std::all_of(form_.tiers.begin(), form_.tiers.end(), [&](const Tier& t) { return t.entries.size() == entries; });
  if (packed == form_.packed.has_value() && disk == form_.disk.has_value() && complete) return;
  forget_tiers(form_);
  if (packed) add_packed_tier(form_);
  if (disk) add_disk_tier(form_, 0, 0);
}

std::shared_ptr<const ChainScript> ChainBase::script() {
  if (!enabled_) {
    if (!plain_script_) plain_script_ = std::make_shared<ChainScript>(form_, schedule::everything()->plan(form_));
    return plain_script_;
  }
  if (!script_) script_ = std::make_shared<ChainScript>(form_, schedule_->plan(form_));
  return script_;
}

const Plan& ChainBase::plan() const {
  const Plan* plan = pass_ ? pass_->plan() : nullptr;
  if (!plan) throw ChainError("[chain] there is no plan yet: no pass has begun, or its schedule is still deciding");
  return *plan;
}

// ---- passes ----

void ChainBase::begin_pass() {
  if (!layers_.known()) form_.layers.clear();
  match_tiers();
  if (enabled_ && schedule_->needs_disk() && !places_.has_disk()) {
    throw ChainError("[chain] the schedule needs a disk, and there is none: call disk() first");
  }
  if (enabled_ && schedule_->needs_sizes() && !sizes_known_) {
    throw ChainError("[chain] the schedule needs the sizes of the layers: call measure() or sizes() first");
  }
  auto decisions = enabled_ ? schedule_->decisions() : nullptr;
  if (!layers_.known() && !enabled_) decisions = std::make_unique<RememberAll>();
  if (!layers_.known() && !decisions) {
    throw ChainError("[chain] the schedule needs to know the number of layers: use schedule::online or ::selective");
  }
  if (decisions) {
    pass_.emplace(std::move(decisions), form_);
  } else {
    pass_.emplace(script());
  }
  sizes_matter_ = enabled_ && schedule_->needs_sizes();
  next_ = 0;
  position_ = 0;
  disk_reads_ = 0;
  phase_ = Phase::forward;
  ++statistics_.passes;
}

void ChainBase::turn(Id layers) {
  match_tiers();
  pass_->turn(form_);
  position_ = layers;
  phase_ = Phase::backward;
  places_.prefetch(pass_->wanted_from_disk(0, 2));
}

void ChainBase::begin_backward(std::span<const Id> remembered) {
  forget_tiers(form_);
  sizes_matter_ = false;
  ChainSteps steps;
  std::size_t next = 0;
  for (Id k = 0; k <= layer_count(); ++k) {
    if (k > 0) steps.push_back({ChainStep::Kind::advance, k});
    if (next == remembered.size() || remembered[next] != k) continue;
    if (k < layer_count()) steps.push_back({ChainStep::Kind::store, k});
    ++next;
  }
  const std::size_t forward = plan_of_steps(form_, steps).actions.size();
  const ChainSteps backward = reverse_from(remembered, layer_count(), layer_count() + 1);
  steps.insert(steps.end(), backward.begin(), backward.end());
  pass_.emplace(std::make_shared<ChainScript>(form_, plan_of_steps(form_, steps)));
  next_ = forward;
  position_ = layer_count();
  phase_ = Phase::backward;
}

void ChainBase::end_pass() {
  places_.clear();
  phase_ = Phase::idle;
  forms_.assign(forms_.size(), 0);
  bytes_ = 0;
  statistics_.remembered = 0;
  count_places();
}

// ---- errors ----

void ChainBase::require_next(Id position, const char* what) const {
  const bool forward = *what == 'f';
  const Id next = forward ? position_ : position_ - 1;
  const bool right_phase = phase_ == (forward ? Phase::forward : Phase::backward);
  if (right_phase && position == next && (!forward || !layers_.known() || position < layer_count())) return;
  std::string expected = "no pass has begun: forward of layer 0 comes first";
  if (phase_ == Phase::forward) expected = fmt::format("forward of layer {} is next", position_);
  if (phase_ == Phase::forward && layers_.known() && position_ == layer_count()) expected = "forward is over";
  if (phase_ == Phase::backward) expected = fmt::format("backward of layer {} is next", position_ - 1);
  throw ChainError(fmt::format("[chain] {} of layer {} was asked for, but {}", what, position, expected));
}

void ChainBase::require_layer(Id position) const {
  if (position >= 0 && position < layer_count()) return;
  throw ChainError(fmt::format("[chain] there is no layer {}: the chain has {}", position,
                               layer_count() == 0 ? "none" : fmt::format("layers 0..{}", layer_count() - 1)));
}

void ChainBase::require_known(bool known, const char* what) const {
  if (layers_.known() == known) return;
  throw ChainError(fmt::format("[chain] {} is for chains whose number of layers is {}", what,
                               known ? "known: this one's is not" : "unknown: this one has one"));
}

void ChainBase::fail_size(Id state, Bytes bytes) const {
  throw ChainError(fmt::format("[chain] the state after layer {} has {} bytes, the plan was made for {}: measure again",
                               state - 1, bytes, form_.state_bytes(state)));
}

void ChainBase::fail(Id position, const char* why) const {
  throw ChainError(fmt::format("[chain] layer {}: {}", position, why));
}

// ---- accounting ----

void ChainBase::count_bytes(Bytes more) {
  bytes_ += more;
  statistics_.stored += more;
  statistics_.peak_stored = std::max(statistics_.peak_stored, statistics_.stored);
}

void ChainBase::count_form(Id state, int more) {
  if (static_cast<std::size_t>(state) >= forms_.size()) forms_.resize(static_cast<std::size_t>(state) + 1, 0);
  const bool before = forms_[state] > 0;
  forms_[state] = static_cast<std::uint8_t>(forms_[state] + more);
  const bool after = forms_[state] > 0;
  if (before == after) return;
  statistics_.remembered += after ? 1 : -1;
  statistics_.peak_remembered = std::max(statistics_.peak_remembered, statistics_.remembered);
}

void ChainBase::count_places() {
  statistics_.stored = bytes_ + places_.memory();
  statistics_.peak_stored = std::max(statistics_.peak_stored, statistics_.stored);
  statistics_.disk = places_.on_disk();
  statistics_.peak_disk = std::max(statistics_.peak_disk, statistics_.disk);
}

void ChainBase::reset_statistics() {
  statistics_ = {.passes = statistics_.passes};
}

ChainStatistics ChainBase::statistics() const {
  // What the background thread has moved since it was counted.
  ChainStatistics now = statistics_;
  now.stored = bytes_ + places_.memory();
  now.disk = places_.on_disk();
  return now;
}

}  // namespace reprise
