#include "chain/chain_engine.h"

#include <fmt/format.h>

#include <cmath>

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
    : states_(states),
      works_in_place_(states.works_in_place()),
      returns_state_(states.returns_state()),
      setup_(std::move(layers), tapes),
      held_(states, tiers_),
      kept_(tiers_) {
  setup_.planner().progress([this](double share) {
    if (!observer_) return;
    observer_({.phase = ChainProgress::Phase::planning,
               .replays = held_.statistics.replays,
               .stored = held_.statistics.stored,
               .planned = share});
  });
}

void ChainEngine::codec(const Codec& codec) {
  tiers_.codec(&codec);
  setup_.places_changed();
}

void ChainEngine::disk(DiskTier tier, std::optional<Bytes> transit, FileSystem* files) {
  tiers_.disk(std::move(tier), transit, files);
  setup_.places_changed();
  folder_is_ours_ = false;
  resumed_.reset();
}

const Plan& ChainEngine::plan() const {
  if (!pass_ || pass_->is_deciding()) {
    throw ChainError("[chain] there is no plan yet: no pass has begun, or its schedule is still deciding");
  }
  return pass_->plan(pass_->form() ? *pass_->form() : form_of_pass());
}

Trace ChainEngine::trace() const {
  if (!pass_) return chain_trace(setup_.form());
  return chain_trace(pass_->form() ? *pass_->form() : form_of_pass());
}

// Of a pass that was made for the number of layers alone.
ChainForm ChainEngine::form_of_pass() const {
  ChainForm form = setup_.form_of_part(pass_->first(), pass_->first() + pass_->layers(), tiers_.used());
  pass_->enter_costs(form);
  return form;
}

// ---- the course of a pass ----

void ChainEngine::begin(Owner owner, Id first) {
  release();
  held_.statistics = {.passes = held_.statistics.passes};
  pass_.reset();
  first_ = start_ = first;
  ran_before_ = false;
  position_ = 0;
  catching_up_ = false;
  cost_.reset();
  owner_ = owner;
  phase_ = Phase::forward;
  ++number_;
  ++held_.statistics.passes;
}

// Chooses the actions of the pass that has begun, or of a part of it, now that its input is there.
void ChainEngine::open(Id input, Id first, Id end) {
  const StateTierSettings& tiers = keeping() ? tiers_.used() : tiers_.next();
  const bool all = first == 0 && (!layers().known() || end == layers().size());
  first_ = first;
  position_ = 0;
  disk_reads_ = 0;
  planned_again_ = 0;
  phase_ = Phase::forward;
  if (all && setup_.needs_sizes() && setup_.sizes_known()) {
    const Bytes bytes = states_.bytes(input), known = setup_.form().input;
    if (bytes > setup_.limit()) {
      throw ChainError(fmt::format("[chain] budget is {} bytes: the input alone has {}", setup_.limit(), bytes));
    }
    if (bytes > known) {
      ChainForm form = setup_.form();
      held_.limit(setup_.limit());
      if (input != ChainStates::lent) held_.count_array(bytes);
      measure_sizes(form, input, tiers);
      if (input != ChainStates::lent) held_.discount_array(bytes);
      setup_.measured_again(std::move(form));
    }
  }
  const ChainInput terms = input_terms(input, tiers);
  pass_.emplace(all ? setup_.begin(tiers, terms) : setup_.begin_part(first, end, tiers, terms));
  if (!keeping()) tiers_.begin(setup_.transit());
  leave_room_for_gradients();
  states_.hold_spares(!pass_->limit());
  const Codec* const codec = tiers_.used().codec;
  if (!ran_before_) verification_.begin(states_, layers().size(), !codec || codec->exact());
  plain_ = returns_state_ && owner_ == Owner::engine && layers().known() && !pass_->tapes() && !pass_->limit() &&
           !pass_->decides() && !ran_before_ && !observer_ && !keeping() && !tiers_.will_keep() &&
           !verification_.is_on();
  pass_->join_layers(plain_);
  part_open_ = true;
}

// Ends forward.
void ChainEngine::turn() {
  pass_->turn();
  if (keeping() && layer_count() > 0) keep_if_remembered(layer_count() - 1);
  phase_ = Phase::backward;
  leave_room_for_gradients();
  tiers_.prefetch(pass_->wanted_from_disk(0, 2), first_);
}

void ChainEngine::release() noexcept {
  tiers_.clear();
  held_.clear();
  result_ = nowhere;
  phase_ = Phase::idle;
  first_ = start_ = 0;
  part_open_ = false;
  plain_ = false;
  kept_on_ = false;
  adopted_.clear();
}

void ChainEngine::clear() {
  release();
  held_.statistics = {};
  states_.hold_spares(false);
  resumed_.reset();
  if (!tiers_.will_keep()) return;
  tiers_.begin(std::nullopt);
  kept_.clear();
  tiers_.close_kept();
  folder_is_ours_ = true;
}

void ChainEngine::begin_forward(Id first) {
  require_known(true, "forward of all layers");
  if (first < 0 || first > layers().size()) {
    throw ChainError(
        fmt::format("[chain] forward cannot begin with layer {}: the chain has {}", first, layers().size()));
  }
  begin(Owner::engine, first);
}

void ChainEngine::begin_forward_until() {
  require_known(false, "forward until something");
  if (tiers_.will_keep()) throw ChainError("[chain] keep needs a number of layers that is known: this chain's is not");
  begin(Owner::engine, 0);
}

Id ChainEngine::forward(Id input) {
  PassGuard guard(*this);
  if (tiers_.will_keep()) require_keeping();
  if (!resumed_ || !forward_resumed(input)) {
    open(input, start_, layers().size());
    if (tiers_.will_keep()) {
      require_room_to_keep(input);  // before anything is written
      begin_kept(input);
    }
    forward_part(input);
  }
  guard.done();
  return std::exchange(result_, nowhere);
}

// Runs all layers of the part, and turns.
void ChainEngine::forward_part(Id input) {
  if (layer_count() == 0) {
    result_ = input;
  } else {
    held_.hold(0, input, states_.bytes(input));
    for (Id layer = 0; layer < layer_count(); ++layer) execute_until(layer);
    execute_what_follows(layer_count() - 1);
  }
  turn();
  if (keeping()) keep_result();
}

Id ChainEngine::forward_until(Id input, const std::function<bool(Id position, Id state)>& done) {
  PassGuard guard(*this);
  open(input, 0, 0);
  held_.hold(0, input, states_.bytes(input));
  Id layer = 0;
  execute_until(layer);
  while (!done(layer, held_.slot(layer + 1))) execute_until(++layer);
  execute_what_follows(layer);
  const Id result = held_.give_away(layer + 1);
  turn();
  guard.done();
  return result;
}

Id ChainEngine::forward_layer(std::uint64_t& pass, std::optional<double> cost) {
  if (cost && !(*cost >= 0 && std::isfinite(*cost))) {
    throw BadOption(fmt::format("[chain] cost is {}: it has to be a number that is not negative", *cost));
  }
  const bool begins = pass == 0;
  if (begins) {
    if (layers().known()) require_layer(0);
    if (tiers_.will_keep()) throw ChainError("[chain] keep is for forward() and backward(), and not for a ChainLoop");
    begin(Owner::caller, 0);
    pass = number_;
  } else {
    require_pass(pass);
    require_forward();
  }
  PassGuard guard(*this);
  if (begins) open(ChainStates::lent, 0, layers().size());
  const Id position = position_;
  held_.borrow(position);
  cost_ = cost;
  execute_until(position);
  execute_what_follows(position);
  held_.copy_if_borrowed(position);
  guard.done();
  return std::exchange(result_, nowhere);
}

void ChainEngine::begin_backward() {
  if (!states_.has_backward()) {
    throw ChainError("[chain] backward was asked for, but the chain was made without a backward closure");
  }
  if (phase_ == Phase::backward) return;
  if (phase_ == Phase::forward && owner_ == Owner::caller && (all_ran() || !layers().known())) return turn();
  if (phase_ != Phase::idle || !held_.has_saved(0) || !layers().known()) fail_backward();
  // From the states that were saved by hand.
  first_ = start_ = 0;
  part_open_ = true;
  verification_.begin(states_, 0, false);
  const std::vector<Id> saved = held_.saved();
  const std::optional<StateTier> tier = tier_by_hand();
  bring_saved_to(tier);
  pass_.emplace(setup_.begin_backward(saved, tier, tiers_.used()));
  if (tier) adopted_.insert(saved.begin(), saved.end());
  held_.adopt_saved();
  position_ = layer_count();
  phase_ = Phase::backward;
  ++number_;
}

void ChainEngine::begin_backward_layer(std::uint64_t pass) {
  if (pass != 0) require_pass(pass);
  begin_backward();
  if (position_ == 0) throw ChainError("[chain] backward was asked for, but there are no layers");
}

void ChainEngine::backward() {
  const PassGuard guard(*this);  // the pass is over, one way or the other
  if (keeping()) keep_seed();
  if (part_open_) backward_part();
  while (first_ > start_) {
    run_segment_forward();
    backward_part();
  }
  if (keeping()) kept_.finish();
  verification_.pass_over();
}

void ChainEngine::backward_part() {
  while (position_ > 0) execute_until(position_ - 1);
  execute_what_follows(0);
}

void ChainEngine::backward_layer(std::uint64_t& pass) {
  PassGuard guard(*this);
  const Id layer = position_ - 1;
  execute_until(layer);
  execute_what_follows(layer);
  if (position_ > 0) return guard.done();
  pass = 0;  // and over
  verification_.pass_over();
}

// ---- errors ----

void ChainEngine::require_layer(Id position) const {
  if (position >= 0 && position < all_layers()) return;
  throw ChainError(fmt::format("[chain] there is no layer {}: the chain has {}", position,
                               all_layers() == 0 ? "none" : fmt::format("layers 0..{}", all_layers() - 1)));
}

void ChainEngine::require_known(bool known, const char* what) const {
  if (layers().known() == known) return;
  throw ChainError(fmt::format("[chain] {} is for chains whose number of layers is {}", what,
                               known ? "known: this one's is not" : "unknown: this one has one"));
}

void ChainEngine::require_pass(std::uint64_t pass) const {
  if (pass == number_ && phase_ != Phase::idle) return;
  throw ChainError("[chain] the pass of this loop is over: another ChainLoop begins another one");
}

void ChainEngine::require_forward() const {
  if (phase_ == Phase::backward) {
    throw ChainError(fmt::format("[chain] forward was asked for, but backward of layer {} is next", position_ - 1));
  }
  if (all_ran()) throw ChainError(fmt::format("[chain] forward was asked for, but all {} layers have run", position_));
}

void ChainEngine::fail_backward() const {
  std::string why = "no pass is open: forward comes first";
  if (phase_ == Phase::forward) why = fmt::format("forward is not over: layer {} is next", position_);
  if (phase_ == Phase::idle && held_.has_saved() && !held_.has_saved(0))
    why = "of the states saved by hand the input is missing: save_input()";
  throw ChainError("[chain] backward was asked for, but " + why);
}

}  // namespace reprise::internal
