#include "reprise/chain/any_chain.h"

#include <fmt/format.h>

#include <ostream>

#include "chain/chain_engine.h"
#include "reprise/trace/error.h"

namespace reprise {
using namespace internal;

const char* name(ChainProgress::Phase phase) {
  switch (phase) {
    case ChainProgress::Phase::forward: return "forward";
    case ChainProgress::Phase::replay: return "replay";
    case ChainProgress::Phase::backward: return "backward";
    case ChainProgress::Phase::planning: return "planning";
  }
  return "?";
}

ChainLayers::ChainLayers(int count) : count_(count), known_(true) {
  if (count < 0) throw BadOption(fmt::format("[chain] layers is {}: it cannot be negative", count));
}

void ChainLayers::fail_number(const std::string& number) {
  throw BadOption("[chain] layers has the number " + number + ", which is no int");
}

std::ostream& operator<<(std::ostream& out, const ChainStatistics& s) {
  const auto line = [&](const char* what, auto number) { out << fmt::format("{:16} {}\n", what, number); };
  line("stored", s.stored);
  line("peak stored", s.peak_stored);
  line("not stored", s.not_stored);
  line("disk", s.disk);
  line("peak disk", s.peak_disk);
  line("remembered", s.remembered);
  line("peak remembered", s.peak_remembered);
  line("forward calls", s.forward_calls);
  line("replays", s.replays);
  line("backward calls", s.backward_calls);
  line("passes", s.passes);
  line("spare", s.spare);
  return out;
}

// ---- for everybody ----

const ChainLayers& AnyChain::layers() const {
  return engine_->setup().layers();
}

void AnyChain::schedule(SchedulePointer schedule) {
  engine_->setup().set_schedule(std::move(schedule));
  engine_->verification().compare_again();
}
const SchedulePointer& AnyChain::schedule() const {
  return engine_->setup().schedule();
}
void AnyChain::enabled(bool on) {
  engine_->setup().set_enabled(on);
}
bool AnyChain::enabled() const {
  return engine_->setup().is_enabled();
}
void AnyChain::sizes(ChainForm form) {
  engine_->setup().set_sizes(std::move(form), engine_->tiers().next_settings());
}
const ChainForm& AnyChain::sizes() const {
  return engine_->setup().form();
}
void AnyChain::observer(std::function<void(const ChainProgress&)> observer) {
  engine_->set_observer(std::move(observer));
}
const std::function<void(const ChainProgress&)>& AnyChain::observer() const {
  return engine_->observer();
}
void AnyChain::verify(Verify when) {
  engine_->verification().set_when(when);
}
Verify AnyChain::verify() const {
  return engine_->verify();
}
void AnyChain::by_hand(ByHand options) {
  engine_->states_by_hand().set_options(options);
}
const ByHand& AnyChain::by_hand() const {
  return engine_->states_by_hand().options();
}
void AnyChain::plan_in_background(bool on) {
  engine_->setup().planner().set_in_background(on);
}
void AnyChain::wait_for_plan() {
  engine_->setup().planner().wait();
}
void AnyChain::cancel_planning() {
  engine_->setup().planner().cancel();
}
ChainStatistics AnyChain::statistics() const {
  return engine_->statistics();
}
StoreStatistics AnyChain::store_statistics(StateTier tier) const {
  return engine_->tiers().statistics(tier);
}
const Plan& AnyChain::plan() const {
  return engine_->plan();
}
Trace AnyChain::trace() const {
  return engine_->trace();
}
bool AnyChain::remembers(Id position) const {
  return engine_->states_by_hand().is_remembered(position);
}
void AnyChain::clear() {
  engine_->clear();
}

// ---- for Chain and ChainLoop ----

AnyChain::AnyChain(ChainLayers layers, bool tapes, std::unique_ptr<ChainStates> states)
    : states_(std::move(states)), engine_(std::make_unique<ChainEngine>(std::move(layers), tapes, *states_)) {}
AnyChain::~AnyChain() = default;
AnyChain::AnyChain(AnyChain&&) noexcept = default;
AnyChain& AnyChain::operator=(AnyChain&& other) noexcept {
  engine_ = std::move(other.engine_);  // first: an engine does not outlive its states
  states_ = std::move(other.states_);
  return *this;
}

void AnyChain::use_codec(const Codec& codec) {
  engine_->set_codec(codec);
}
void AnyChain::use_disk(DiskTier tier, std::optional<Bytes> transit) {
  engine_->set_disk(std::move(tier), transit);
}
void internal::set_file_system(AnyChain& chain, FileSystem* files) {
  chain.engine_->tiers().set_file_system(files);
}
const Codec* AnyChain::used_codec() const {
  return engine_->tiers().next_settings().codec;
}
const std::optional<DiskTier>& AnyChain::used_disk() const {
  return engine_->tiers().next_settings().disk;
}
ChainResume AnyChain::resume_pass(std::uint64_t fingerprint) {
  return engine_->resume(fingerprint);
}
void AnyChain::measure_layers() {
  engine_->measure();
}
void AnyChain::begin_forward(Id first) {
  engine_->begin_forward(first);
}
void AnyChain::begin_forward_until() {
  engine_->begin_forward_until();
}
Id AnyChain::run_forward(Id input) {
  return engine_->forward(input);
}
Id AnyChain::run_forward_until(Id input, const std::function<bool(Id position, Id state)>& done) {
  return engine_->forward_until(input, done);
}
void AnyChain::begin_backward() {
  engine_->begin_backward();
}
void AnyChain::run_backward() {
  engine_->backward();
}
Id AnyChain::run_layer_forward(std::uint64_t& pass, std::optional<double> cost) {
  return engine_->forward_layer(pass, cost);
}
void AnyChain::begin_layer_backward(std::uint64_t pass) {
  engine_->begin_backward_layer(pass);
}
void AnyChain::run_layer_backward(std::uint64_t& pass) {
  engine_->backward_layer(pass);
}
void AnyChain::require_layer(Id position) const {
  engine_->states_by_hand().require_layer(position);
}
void AnyChain::save_state(Id state, Id slot) {
  engine_->states_by_hand().save(state, slot);
}
Id AnyChain::copy_state(Id position) {
  return engine_->states_by_hand().copy(position);
}
Id AnyChain::recompute_state(Id position) {
  return engine_->states_by_hand().recompute(position);
}

}  // namespace reprise
