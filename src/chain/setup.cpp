#include "chain/setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"
#include "store/disk.h"

namespace reprise::internal {
namespace {

// Remembers everything, for an unknown number of layers.
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

// A plan of this many layers takes a few megabytes. A plan is checked once, and a pass that follows one is quicker than
// one whose steps are generated and checked every time.
constexpr Id most_layers_of_plan = 10'000;

void remove_tiers(ChainForm& form) {
  form.tiers.clear();
  form.packed.reset();
  form.disk.reset();
}

void enter_terms(Tier& tier, std::span<const StateTierCosts> terms) {
  for (std::size_t k = 0; k < terms.size(); ++k) {
    TierEntry& entry = tier.entries[k];
    entry = {entry.value, terms[k].bytes, terms[k].put_seconds, terms[k].get_seconds};
  }
}

Bytes largest_state(const ChainForm& form) {
  Bytes largest = form.input;
  for (const ChainLayerForm& layer : form.layers) largest = std::max(largest, layer.state);
  return largest;
}

}  // namespace

// ---- settings ----

ChainSetup::ChainSetup(ChainLayers layers, bool tapes)
    : layers_(std::move(layers)),
      tapes_(tapes),
      schedule_(layers_.known() ? schedule::every() : schedule::online(64)) {}

const ChainForm& ChainSetup::form() const {
  if (!form_) {
    form_ = equal_layers(layers_.size());
    form_->tapes = tapes_;
  }
  return *form_;
}

ChainForm& ChainSetup::own_form() {
  (void)form();
  return *form_;
}

double ChainSetup::forward_cost(Id layer) const {
  return form_ && layer < form_->size() ? form_->layers[layer].forward_cost : ChainLayerForm().forward_cost;
}

void ChainSetup::set_schedule(SchedulePointer schedule) {
  if (!schedule) throw BadOption("[chain] schedule is null");
  schedule_ = std::move(schedule);
  clear_plan();
  ++changes_;
}

void ChainSetup::set_sizes(ChainForm form, const StateTierSettings& tiers) {
  if (form.size() != layers_.size() || !layers_.known()) {
    throw BadOption(fmt::format("[chain] sizes are of {} layers, the chain has {}", form.size(),
                                layers_.known() ? std::to_string(layers_.size()) : "an unknown number"));
  }
  check(form);
  set_measured(std::move(form), {}, {}, tiers);
  are_gradients_assumed_ = false;
}

void ChainSetup::set_measured(ChainForm form, std::span<const StateTierCosts> packed,
                              std::span<const StateTierCosts> disk, const StateTierSettings& tiers) {
  form.tapes = tapes_;
  remove_tiers(form);
  match_tiers(form, tiers);
  if (form.packed) enter_terms(form.tiers[*form.packed], packed);
  if (form.disk) enter_terms(form.tiers[*form.disk], disk);
  form_ = std::move(form);
  disabled_plan_.reset();
  has_sizes_ = true;
  are_gradients_assumed_ = true;
  clear_plan();
  ++changes_;
}

void ChainSetup::set_measured_again(ChainForm form) {
  form_ = std::move(form);
  clear_plan();
}

void ChainSetup::tiers_changed() {
  if (form_) remove_tiers(*form_);
  clear_plan();
  ++changes_;
}

// ---- tiers ----

// Gives the form the tiers of the settings, with an entry for every state.
void ChainSetup::match_tiers(ChainForm& form, const StateTierSettings& tiers) const {
  const bool packed = is_enabled_ && tiers.codec, disk = is_enabled_ && tiers.disk;
  const auto entries = static_cast<std::size_t>(form.size()) + 1;
  const bool complete =
      std::all_of(form.tiers.begin(), form.tiers.end(), [&](const Tier& t) { return t.entries.size() == entries; });
  if (packed == form.packed.has_value() && disk == form.disk.has_value() && complete) return;
  remove_tiers(form);
  if (packed) add_packed_tier(form);
  if (!disk) return;
  add_disk_tier(form, 0, 0);
  Tier& tier = form.tiers[*form.disk];
  for (TierEntry& entry : tier.entries) entry.bytes += Disk::header_bytes;
  if (tiers.disk->budget < largest_bytes) tier.capacity = tiers.disk->budget;
}

// Sets the bytes that states take on their way. One state at a time is an array on its way to or from a tier, and is
// being coded; the store of the disk has some states in memory, fewer if the limit is not much larger than a state.
// A store without memory writes and reads while the chain waits, and cannot code.
void ChainSetup::reserve_transit(ChainForm& form, Bytes limit, const StateTierSettings& tiers,
                                 const InputSizes& input) {
  form.transit = 0;
  transit_.reset();
  if (form.tiers.empty()) return;
  const Bytes largest = largest_state(form);
  Bytes room = 0;
  if (tiers.codec && input.bytes > 0) {
    const double ratio = static_cast<double>(input.room) / static_cast<double>(input.bytes);
    room = std::max(input.room, static_cast<Bytes>(ratio * static_cast<double>(largest)) + 1);
  }
  form.transit = largest + room;
  if (!form.disk) return;
  Bytes states = limit >= 32 * largest ? 4 : limit >= 16 * largest ? 2 : limit >= 8 * largest ? 1 : 0;
  if (tiers.codec) states = std::max<Bytes>(states, 1);
  transit_ = tiers.transit.value_or(transit_bytes(states, largest, room));
  form.transit += *transit_;
}

// ---- passes ----

void ChainSetup::clear_plan() {
  plan_.reset();
  planner_.discard();
}

std::shared_ptr<const ChainPlan> ChainSetup::plan(const StateTierSettings& tiers, const InputSizes& input) {
  ChainForm& form = own_form();
  match_tiers(form, tiers);
  transit_.reset();
  if (needs_sizes()) reserve_transit(form, limit(), tiers, input);
  // Whether a limited disk suffices has to be known now. States of unknown sizes are taken to be as large as the first.
  if (!has_sizes_ && form.disk && form.tiers[*form.disk].capacity) {
    const Bytes entry = input.coded + Disk::header_bytes;
    if (entry != plan_entry_) clear_plan();
    plan_entry_ = entry;
    for (TierEntry& e : form.tiers[*form.disk].entries) e.bytes = entry;
  }
  if (auto made = planner_.take()) plan_ = std::move(made);
  if (!plan_) plan_ = planner_.make(schedule_, form);
  return plan_;
}

std::shared_ptr<const ChainPlan> ChainSetup::disabled_plan() {
  if (!disabled_plan_) {
    ChainForm plain = form();
    remove_tiers(plain);
    Plan plan = schedule::everything()->plan(plain);
    disabled_plan_ = std::make_shared<ChainPlan>(std::move(plain), std::move(plan));
  }
  return disabled_plan_;
}

// Returns the schedule of a pass that begins now. Throws ChainError if something is missing that the schedule needs.
SchedulePointer ChainSetup::used_schedule(const StateTierSettings& tiers) {
  const SchedulePointer schedule = is_enabled_ ? schedule_ : schedule::everything();
  if (schedule->needs_disk() && !tiers.disk) {
    throw ChainError("[chain] the schedule needs a disk, and there is none: call disk() first");
  }
  if (needs_sizes() && !has_sizes_) {
    throw ChainError("[chain] the schedule needs the sizes of the layers: call measure() or sizes() first");
  }
  transit_.reset();
  used_schedule_ = schedule;
  used_changes_ = changes_;
  return schedule;
}

PassPart ChainSetup::part(Id first, Id end, const StateTierSettings& tiers) const {
  PassPart part{first, end - first, tapes_, {}};
  if (is_enabled_ && tiers.codec) part.tiers.packed = 0;
  if (is_enabled_ && tiers.disk) part.tiers.disk = part.tiers.packed ? 1 : 0;
  return part;
}

ChainForm ChainSetup::form_of_part(Id first, Id end, const StateTierSettings& tiers) const {
  ChainForm all = layers_.known() ? form() : equal_layers(end);
  all.tapes = tapes_;
  match_tiers(all, tiers);
  if (first == 0 && end == all.size()) return all;
  ChainForm part = all;
  part.layers.assign(all.layers.begin() + first, all.layers.begin() + end);
  part.input = all.state_bytes(first);
  part.part_from = first;
  if (end < all.size()) part.gradient = all.layers[end].gradient;
  for (Tier& tier : part.tiers) {
    tier.entries.assign(tier.entries.begin() + first, tier.entries.begin() + end + 1);
    for (Id k = 0; k <= part.size(); ++k) tier.entries[k].value = part.state_value(k);
  }
  return part;
}

std::optional<PassActions> ChainSetup::begin_without_plan(const SchedulePointer& schedule, const PassPart& part) {
  auto decisions = schedule->decisions();
  if (!layers_.known() && !is_enabled_) decisions = std::make_unique<RememberAll>();
  if (decisions) return PassActions(schedule, std::move(decisions), part);
  if (!layers_.known()) {
    throw ChainError("[chain] the schedule needs to know the number of layers: use schedule::online or ::selective");
  }
  // What is limited is checked as a whole before the pass begins.
  if (schedule->needs_disk() || schedule->needs_sizes()) return std::nullopt;
  const bool all = part.layers == layers_.size();
  if (all && part.layers <= most_layers_of_plan) return std::nullopt;  // so that there is one plan for many passes
  auto source = schedule->steps(part.layers);
  if (!source) return std::nullopt;
  return PassActions(schedule, std::move(source), part);
}

PassActions ChainSetup::begin_part(Id first, Id end, const StateTierSettings& tiers, const InputSizes& input) {
  const SchedulePointer schedule = used_schedule(tiers);
  if (auto pass = begin_without_plan(schedule, part(first, end, tiers))) return *std::move(pass);
  ChainForm form = form_of_part(first, end, tiers);
  if (needs_sizes()) reserve_transit(form, limit(), tiers, input);
  return PassActions(planner_.make(schedule, form, true));
}

PassActions ChainSetup::begin(const StateTierSettings& tiers, const InputSizes& input) {
  const SchedulePointer schedule = used_schedule(tiers);
  if (auto pass = begin_without_plan(schedule, part(0, layers_.size(), tiers))) return *std::move(pass);
  return PassActions(is_enabled_ ? plan(tiers, input) : disabled_plan());
}

PassActions ChainSetup::begin_again(Id first, ChainForm sizes, const StateTierSettings& tiers,
                                    const InputSizes& input) {
  reserve_transit(sizes, used_schedule_->limit().value_or(largest_bytes), tiers, input);
  // The next pass has the same plan if it is for all layers, from where forward begins, and for the same settings.
  const bool same_settings = changes_ == used_changes_;
  const bool is_next = same_settings && sizes.size() == layers_.size() && sizes.other == form().other;
  if (same_settings) clear_plan();  // they were made for other sizes
  auto again = planner_.make(used_schedule_, sizes, !is_next);
  if (same_settings) {
    ChainForm& form = own_form();
    (first == 0 ? form.input : form.layers[first - 1].state) = sizes.input;
    std::copy(sizes.layers.begin(), sizes.layers.end(), form.layers.begin() + first);
    if (sizes.size() == layers_.size()) form.gradient = sizes.gradient;
    for (std::size_t t = 0; t < form.tiers.size(); ++t) {
      for (Id k = 0; k <= sizes.size(); ++k) form.tiers[t].entries[first + k].bytes = sizes.tiers[t].entries[k].bytes;
    }
    if (is_next) plan_ = again;
  }
  return PassActions(std::move(again));
}

PassActions ChainSetup::begin_backward(std::span<const Id> remembered, std::optional<StateTier> tier,
                                       const StateTierSettings& tiers) const {
  ChainForm form = this->form();
  if (tier) {
    match_tiers(form, tiers);
  } else {
    remove_tiers(form);
  }
  const Id layers = form.size(), level = tier == StateTier::disk ? 1 : 0;
  ChainSteps steps;
  std::size_t next = 0;
  for (Id k = 0; k <= layers; ++k) {
    if (k > 0) steps.push_back({ChainStep::Kind::advance, k});
    if (next == remembered.size() || remembered[next] != k) continue;
    if (k < layers) steps.push_back({ChainStep::Kind::store, k, level});
    ++next;
  }
  const std::size_t done = plan_of_steps(form, steps).actions.size();
  ChainSteps backward = reverse_from(remembered, layers, layers + 1);
  for (ChainStep& step : backward) {
    const bool about_a_tier = step.kind == ChainStep::Kind::load || step.kind == ChainStep::Kind::discard;
    if (about_a_tier && std::binary_search(remembered.begin(), remembered.end(), step.at)) step.level = level;
  }
  steps.insert(steps.end(), backward.begin(), backward.end());
  Plan plan = plan_of_steps(form, steps);
  return PassActions(std::make_shared<ChainPlan>(std::move(form), std::move(plan)), done);
}

}  // namespace reprise::internal
