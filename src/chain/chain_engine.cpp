#include "chain/chain_engine.h"

#include <fmt/format.h>

#include <cmath>

#include "chain/temporary_state.h"
#include "reprise/trace/error.h"

namespace reprise::internal {

// Releases everything unless the part of a pass that it stands for was done.
class ChainEngine::PassGuard {
 public:
  explicit PassGuard(ChainEngine& engine) : engine_(engine) {}
  PassGuard(const PassGuard&) = delete;
  PassGuard& operator=(const PassGuard&) = delete;
  ~PassGuard() {
    if (!done_) engine_.release();
  }
  void done() { done_ = true; }

 private:
  ChainEngine& engine_;
  bool done_ = false;
};

ChainEngine::ChainEngine(ChainLayers layers, bool tapes, ChainStates& states)
    : context_(std::move(layers), tapes, states),
      pass_(context_.pass),
      sizes_(context_),
      keeper_(context_, sizes_),
      by_hand_(context_, keeper_),
      executor_(context_, sizes_, keeper_) {
  context_.setup.planner().set_progress([this](double share) {
    if (!context_.observer) return;
    context_.observer({.phase = ChainProgress::Phase::planning,
                       .replays = context_.account.statistics.replays,
                       .stored = context_.account.statistics.stored,
                       .planned = share});
  });
}

// ---- settings ----

void ChainEngine::set_codec(const Codec& codec) {
  context_.tiers.set_codec(&codec);
  context_.setup.tiers_changed();
}

void ChainEngine::set_disk(DiskTier tier, std::optional<Bytes> transit) {
  context_.tiers.set_disk(std::move(tier), transit);
  context_.setup.tiers_changed();
  keeper_.disk_changed();
}

void ChainEngine::set_observer(std::function<void(const ChainProgress&)> observer) {
  context_.observer = std::move(observer);
  executor_.observer_changed();
}

void ChainEngine::measure() {
  require_known(true, "measure");
  sizes_.measure_layers();
}

// ---- beginning and ending ----

void ChainEngine::begin(ChainPass::LoopOwner owner, Id first) {
  release();
  ChainStatistics& statistics = context_.account.statistics;
  statistics = {.passes = statistics.passes + 1};
  pass_.begin(owner, first);
}

// Chooses the actions of the pass that has begun, or of a part of it, now that its input is there.
void ChainEngine::open_part(Id input, Id first, Id end) {
  ChainSetup& setup = context_.setup;
  const StateTierSettings& tiers = keeper_.is_on() ? context_.tiers.settings() : context_.tiers.next_settings();
  const bool is_all = first == 0 && (!layers().known() || end == layers().size());
  pass_.begin_part(first);
  if (is_all && setup.needs_sizes() && setup.has_sizes()) sizes_.measure_if_larger(input, tiers);
  const InputSizes sizes = sizes_.input_sizes(input, tiers);
  pass_.actions.emplace(is_all ? setup.begin(tiers, sizes) : setup.begin_part(first, end, tiers, sizes));
  if (!keeper_.is_on()) context_.tiers.begin(setup.transit());
  sizes_.begin_part();
  context_.states.hold_spares(!pass_.actions->limit());
  const Codec* const codec = context_.tiers.settings().codec;
  if (!pass_.has_run_before) {
    context_.verification.begin(context_.states, layers().size(), !codec || codec->exact());
  }
  executor_.begin_part();
  pass_.is_open = true;
}

void ChainEngine::release() noexcept {
  context_.tiers.clear();
  context_.held.clear();
  pass_.end();
  executor_.end();
  keeper_.stop();
}

void ChainEngine::clear() {
  release();
  context_.account.statistics = {};
  context_.states.hold_spares(false);
  keeper_.clear();
}

// ---- a pass whose loop is the engine's ----

void ChainEngine::begin_forward(Id first) {
  require_known(true, "forward of all layers");
  if (first < 0 || first > layers().size()) {
    throw ChainError(
        fmt::format("[chain] forward cannot begin with layer {}: the chain has {}", first, layers().size()));
  }
  begin(ChainPass::LoopOwner::engine, first);
}

void ChainEngine::begin_forward_until() {
  require_known(false, "forward until something");
  if (context_.tiers.is_next_kept()) {
    throw ChainError("[chain] keep needs a number of layers that is known: this chain's is not");
  }
  begin(ChainPass::LoopOwner::engine, 0);
}

Id ChainEngine::forward(Id input) {
  PassGuard guard(*this);
  const bool will_be_kept = context_.tiers.is_next_kept();
  if (will_be_kept) keeper_.require_can_keep();
  if (!keeper_.has_found() || !forward_resumed(input)) {
    open_part(input, pass_.start, layers().size());
    if (will_be_kept) {
      keeper_.require_room(input);  // before anything is written
      keeper_.begin(input);
    }
    forward_part(input);
  }
  guard.done();
  return pass_.take_result();
}

void ChainEngine::forward_part(Id input) {
  executor_.run_forward(input);
  if (keeper_.is_on()) keeper_.keep_result();
}

// Returns false if a new pass begins instead.
bool ChainEngine::forward_resumed(Id input) {
  if (!keeper_.resume(input)) return false;
  if (const auto end = keeper_.backward_end()) {
    pass_.first = *end;
    pass_.phase = ChainPass::Phase::backward;
    context_.verification.begin(context_.states, 0, false);
    pass_.result = keeper_.decode_result();
  } else {
    forward_from_kept(keeper_.last_state_up_to(layers().size()).value(), layers().size());
  }
  return true;
}

void ChainEngine::forward_from_kept(Id from, Id end) {
  const Id state = keeper_.decode_state(from);
  open_part(state, from, end);
  keeper_.require_room(state);
  forward_part(state);
}

Id ChainEngine::forward_until(Id input, const std::function<bool(Id position, Id state)>& done) {
  PassGuard guard(*this);
  open_part(input, 0, 0);
  executor_.run_forward_until(input, done);
  guard.done();
  return pass_.take_result();
}

void ChainEngine::begin_backward() {
  if (!context_.states.has_backward()) {
    throw ChainError("[chain] backward was asked for, but the chain was made without a backward closure");
  }
  if (pass_.is_backward()) return;
  const bool loop_is_callers = pass_.loop_owner == ChainPass::LoopOwner::caller;
  if (pass_.is_forward() && loop_is_callers && (has_run_all() || !layers().known())) return executor_.turn();
  if (pass_.phase != ChainPass::Phase::idle || !context_.held.has_saved(0) || !layers().known()) fail_backward();
  context_.verification.begin(context_.states, 0, false);
  by_hand_.begin_backward();
  pass_.position = context_.part_size();
  pass_.phase = ChainPass::Phase::backward;
  pass_.is_open = true;
  ++pass_.number;
}

void ChainEngine::backward() {
  const PassGuard guard(*this);  // the pass is over, one way or the other
  if (keeper_.is_on()) keeper_.keep_seed();
  if (pass_.is_open) executor_.run_backward();
  while (pass_.first > pass_.start) {
    remake_part_before();
    executor_.run_backward();
  }
  if (keeper_.is_on()) keeper_.finish();
  context_.verification.end_pass();
}

// Runs forward once more from the last state that was kept to where backward has come. Backward has come to a state
// that was kept as well, perhaps the one that this process began with: forward has to make the same.
void ChainEngine::remake_part_before() {
  const Id end = pass_.first, from = keeper_.last_state_up_to(end - 1).value();
  const PassKeeper::Decoded kept = keeper_.last_decoded();
  pass_.has_run_before = true;
  forward_from_kept(from, end);
  TemporaryState made(context_.states);
  const Id slot = pass_.take_result();
  made.replace(slot);
  if (kept.state == end && slot != nowhere) keeper_.require_same(kept, slot, from);
}

ChainResume ChainEngine::resume(std::uint64_t fingerprint) {
  if (!context_.tiers.is_next_kept()) {
    throw ChainError(
        "[chain] resume was asked for, but nothing is kept: call disk({.folder = ..., .keep = true}) first");
  }
  require_known(true, "resume");
  release();
  return keeper_.find(fingerprint);
}

// ---- a pass whose loop is the caller's ----

Id ChainEngine::forward_layer(std::uint64_t& pass, std::optional<double> cost) {
  if (cost && !(*cost >= 0 && std::isfinite(*cost))) {
    throw BadOption(fmt::format("[chain] cost is {}: it has to be a number that is not negative", *cost));
  }
  const bool begins = pass == 0;
  if (begins) {
    if (layers().known()) by_hand_.require_layer(0);
    if (context_.tiers.is_next_kept()) {
      throw ChainError("[chain] keep is for forward() and backward(), and not for a ChainLoop");
    }
    begin(ChainPass::LoopOwner::caller, 0);
    pass = pass_.number;
  } else {
    require_pass(pass);
    require_forward();
  }
  PassGuard guard(*this);
  if (begins) open_part(ChainStates::lent, 0, layers().size());
  executor_.run_next_forward(cost);
  guard.done();
  return pass_.take_result();
}

void ChainEngine::begin_backward_layer(std::uint64_t pass) {
  if (pass != 0) require_pass(pass);
  begin_backward();
  if (pass_.position == 0) throw ChainError("[chain] backward was asked for, but there are no layers");
}

void ChainEngine::backward_layer(std::uint64_t& pass) {
  PassGuard guard(*this);
  executor_.run_next_backward();
  if (pass_.position > 0) return guard.done();
  pass = 0;  // and over
  context_.verification.end_pass();
}

// ---- results ----

const Plan& ChainEngine::plan() const {
  if (!pass_.actions || pass_.actions->is_deciding()) {
    throw ChainError("[chain] there is no plan yet: no pass has begun, or its schedule is still deciding");
  }
  return pass_.actions->plan(context_.form());
}

Trace ChainEngine::trace() const {
  return chain_trace(pass_.actions ? context_.form() : context_.setup.form());
}

// ---- errors ----

void ChainEngine::require_known(bool known, const char* what) const {
  if (layers().known() == known) return;
  throw ChainError(fmt::format("[chain] {} is for chains whose number of layers is {}", what,
                               known ? "known: this one's is not" : "unknown: this one has one"));
}

void ChainEngine::require_pass(std::uint64_t pass) const {
  if (pass == pass_.number && pass_.phase != ChainPass::Phase::idle) return;
  throw ChainError("[chain] the pass of this loop is over: another ChainLoop begins another one");
}

void ChainEngine::require_forward() const {
  if (pass_.is_backward()) {
    throw ChainError(
        fmt::format("[chain] forward was asked for, but backward of layer {} is next", pass_.position - 1));
  }
  if (has_run_all()) {
    throw ChainError(fmt::format("[chain] forward was asked for, but all {} layers have run", pass_.position));
  }
}

void ChainEngine::fail_backward() const {
  std::string why = "no pass is open: forward comes first";
  if (pass_.is_forward()) why = fmt::format("forward is not over: layer {} is next", pass_.position);
  if (pass_.phase == ChainPass::Phase::idle && context_.held.has_saved() && !context_.held.has_saved(0))
    why = "of the states saved by hand the input is missing: save_input()";
  throw ChainError("[chain] backward was asked for, but " + why);
}

}  // namespace reprise::internal
