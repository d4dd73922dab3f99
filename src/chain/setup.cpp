#include "chain/setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/plan/revolve.h"
#include "reprise/trace/error.h"
#include "store/disk.h"

namespace reprise::internal {
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

// A script of so many layers takes a few megabytes. It is checked once, and a pass by it is quicker than one whose
// steps are generated and checked every time.
constexpr Id most_layers_of_script = 10'000;

void forget_tiers(ChainForm& form) {
  form.tiers.clear();
  form.packed.reset();
  form.disk.reset();
}

void enter_terms(Tier& tier, std::span<const StateTierTerms> terms) {
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

void ChainSetup::schedule(SchedulePointer schedule) {
  if (!schedule) throw BadOption("[chain] schedule is null");
  schedule_ = std::move(schedule);
  forget_script();
  ++changes_;
}

void ChainSetup::sizes(ChainForm form, const StateTierSettings& tiers) {
  if (form.size() != layers_.size() || !layers_.known()) {
    throw BadOption(fmt::format("[chain] sizes are of {} layers, the chain has {}", form.size(),
                                layers_.known() ? std::to_string(layers_.size()) : "an unknown number"));
  }
  check(form);
  measured(std::move(form), {}, {}, tiers);
  gradients_assumed_ = false;
}

void ChainSetup::measured(ChainForm form, std::span<const StateTierTerms> packed, std::span<const StateTierTerms> disk,
                          const StateTierSettings& tiers) {
  form.tapes = tapes_;
  forget_tiers(form);
  match_tiers(form, tiers);
  if (form.packed) enter_terms(form.tiers[*form.packed], packed);
  if (form.disk) enter_terms(form.tiers[*form.disk], disk);
  form_ = std::move(form);
  plain_script_.reset();
  sizes_known_ = true;
  gradients_assumed_ = true;
  forget_script();
  ++changes_;
}

void ChainSetup::measured_again(ChainForm form) {
  form_ = std::move(form);
  forget_script();
}

void ChainSetup::places_changed() {
  if (form_) forget_tiers(*form_);
  forget_script();
  ++changes_;
}

// ---- tiers ----

// The tiers are those of the settings, and name every state.
void ChainSetup::match_tiers(ChainForm& form, const StateTierSettings& tiers) const {
  const bool packed = enabled_ && tiers.codec, disk = enabled_ && tiers.disk;
  const auto entries = static_cast<std::size_t>(form.size()) + 1;
  const bool complete =
      std::all_of(form.tiers.begin(), form.tiers.end(), [&](const Tier& t) { return t.entries.size() == entries; });
  if (packed == form.packed.has_value() && disk == form.disk.has_value() && complete) return;
  forget_tiers(form);
  if (packed) add_packed_tier(form);
  if (!disk) return;
  add_disk_tier(form, 0, 0);
  Tier& tier = form.tiers[*form.disk];
  for (TierEntry& entry : tier.entries) entry.bytes += Disk::header_bytes;
  if (tiers.disk->budget < largest_bytes) tier.capacity = tiers.disk->budget;
}

// One state at a time is an array on its way to or from a tier, and is being coded; the store of the disk has some
// states in memory, fewer of them if the limit is not much larger than a state. Without any it writes and reads while
// the chain waits, and cannot code.
void ChainSetup::reserve_transit(ChainForm& form, Bytes limit, const StateTierSettings& tiers,
                                 const ChainInput& input) {
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

void ChainSetup::forget_script() {
  script_.reset();
  planner_.forget();
}

std::shared_ptr<const ChainScript> ChainSetup::script(const StateTierSettings& tiers, const ChainInput& input) {
  ChainForm& form = own_form();
  match_tiers(form, tiers);
  transit_.reset();
  if (needs_sizes()) reserve_transit(form, limit(), tiers, input);
  // Whether a limited disk suffices has to be known now, and if nobody has told the sizes, states are as large as the
  // first one.
  if (!sizes_known_ && form.disk && form.tiers[*form.disk].capacity) {
    const Bytes entry = input.coded + Disk::header_bytes;
    if (entry != script_entry_) forget_script();
    script_entry_ = entry;
    for (TierEntry& e : form.tiers[*form.disk].entries) e.bytes = entry;
  }
  if (auto made = planner_.take()) script_ = std::move(made);
  if (!script_) script_ = planner_.make(schedule_, form);
  return script_;
}

std::shared_ptr<const ChainScript> ChainSetup::plain_script() {
  if (!plain_script_) {
    ChainForm plain = form();
    forget_tiers(plain);
    Plan plan = schedule::everything()->plan(plain);
    plain_script_ = std::make_shared<ChainScript>(std::move(plain), std::move(plan));
  }
  return plain_script_;
}

// Of a pass that begins now, with everything that it needs.
SchedulePointer ChainSetup::used_schedule(const StateTierSettings& tiers) {
  const SchedulePointer schedule = enabled_ ? schedule_ : schedule::everything();
  if (schedule->needs_disk() && !tiers.disk) {
    throw ChainError("[chain] the schedule needs a disk, and there is none: call disk() first");
  }
  if (needs_sizes() && !sizes_known_) {
    throw ChainError("[chain] the schedule needs the sizes of the layers: call measure() or sizes() first");
  }
  transit_.reset();
  used_schedule_ = schedule;
  used_changes_ = changes_;
  return schedule;
}

PassPart ChainSetup::part(Id first, Id end, const StateTierSettings& tiers) const {
  PassPart part{first, end - first, tapes_, {}};
  if (enabled_ && tiers.codec) part.tiers.packed = 0;
  if (enabled_ && tiers.disk) part.tiers.disk = part.tiers.packed ? 1 : 0;
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

std::optional<ChainPass> ChainSetup::begin_without_plan(const SchedulePointer& schedule, const PassPart& part) {
  auto decisions = schedule->decisions();
  if (!layers_.known() && !enabled_) decisions = std::make_unique<RememberAll>();
  if (decisions) return ChainPass(schedule, std::move(decisions), part);
  if (!layers_.known()) {
    throw ChainError("[chain] the schedule needs to know the number of layers: use schedule::online or ::selective");
  }
  // What is limited is checked as a whole before the pass begins.
  if (schedule->needs_disk() || schedule->needs_sizes()) return std::nullopt;
  const bool all = part.layers == layers_.size();
  if (all && part.layers <= most_layers_of_script) return std::nullopt;  // so that there is one script for many passes
  auto source = schedule->steps(part.layers);
  if (!source) return std::nullopt;
  return ChainPass(schedule, std::move(source), part);
}

ChainPass ChainSetup::begin_part(Id first, Id end, const StateTierSettings& tiers, const ChainInput& input) {
  const SchedulePointer schedule = used_schedule(tiers);
  if (auto pass = begin_without_plan(schedule, part(first, end, tiers))) return *std::move(pass);
  ChainForm form = form_of_part(first, end, tiers);
  if (needs_sizes()) reserve_transit(form, limit(), tiers, input);
  return ChainPass(planner_.make(schedule, form, true));
}

ChainPass ChainSetup::begin(const StateTierSettings& tiers, const ChainInput& input) {
  const SchedulePointer schedule = used_schedule(tiers);
  if (auto pass = begin_without_plan(schedule, part(0, layers_.size(), tiers))) return *std::move(pass);
  return ChainPass(enabled_ ? script(tiers, input) : plain_script());
}

ChainPass ChainSetup::begin_again(Id first, ChainForm sizes, const StateTierSettings& tiers, const ChainInput& input) {
  reserve_transit(sizes, used_schedule_->limit().value_or(largest_bytes), tiers, input);
  // The next pass has the same plan if it is for all layers, from where forward begins, and for the same settings.
  const bool same_settings = changes_ == used_changes_;
  const bool is_next = same_settings && sizes.size() == layers_.size() && sizes.other == form().other;
  if (same_settings) forget_script();  // they were made for other sizes
  auto again = planner_.make(used_schedule_, sizes, !is_next);
  if (same_settings) {
    ChainForm& form = own_form();
    (first == 0 ? form.input : form.layers[first - 1].state) = sizes.input;
    std::copy(sizes.layers.begin(), sizes.layers.end(), form.layers.begin() + first);
    if (sizes.size() == layers_.size()) form.gradient = sizes.gradient;
    for (std::size_t t = 0; t < form.tiers.size(); ++t) {
      for (Id k = 0; k <= sizes.size(); ++k) form.tiers[t].entries[first + k].bytes = sizes.tiers[t].entries[k].bytes;
    }
    if (is_next) script_ = again;
  }
  return ChainPass(std::move(again));
}

ChainPass ChainSetup::begin_backward(std::span<const Id> remembered, std::optional<StateTier> tier,
                                     const StateTierSettings& tiers) const {
  ChainForm form = this->form();
  if (tier) {
    match_tiers(form, tiers);
  } else {
    forget_tiers(form);
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
  return ChainPass(std::make_shared<ChainScript>(std::move(form), std::move(plan)), done);
}

}  // namespace reprise::internal
