#include "reprise/simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "reprise/trace/timeline.h"
#include "simulate/clocks.h"
#include "simulate/residences.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

constexpr std::size_t never = static_cast<std::size_t>(-1);

// Thrown inside this file only: a rule is broken and the plan stops here.
struct Broken {
  Rule rule;
  std::optional<Id> value;
  std::string why;
};

class Interpreter {
 public:
  Interpreter(const Trace& trace, const Plan& plan, const SimulateOptions& options)
      : trace_(trace),
        plan_(plan),
        options_(options),
        timeline_(trace),
        undropped_(trace.values.size(), 0),
        held_(trace.values.size(), 0),
        tier_bytes_(plan.tiers.size(), 0),
        clocks_(plan, trace.values.size()),
        residences_(options.record_residences, trace.values.size()) {
    result_.tier_peaks.assign(plan.tiers.size(), 0);
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (timeline_.made_at(v) == nowhere && !trace_.values[v].held) make_resident(v);
    }
  }

  Simulation run() {
    if (options_.record_live) result_.live.reserve(plan_.actions.size());
    try {
      find_last_gets();
      for (; at_ < plan_.actions.size(); ++at_) {
        const Action& action = plan_.actions[at_];
        origin_ = origin_of(action.kind);
        execute(action, at_);
        if (options_.record_times) result_.times.push_back(result_.cost);
        result_.cost = clocks_.now();
        result_.waited = clocks_.waited();
        if (live_ > result_.peak && action.kind != Action::Kind::drop) {
          result_.peak = live_;
          result_.peak_action = at_;
        }
        if (options_.record_live) result_.live.push_back(live_);
      }
      if (next_ < trace_.moment_count()) {
        throw Broken{Rule::complete, {}, fmt::format("moment {} {} has not run", next_, quoted(next_))};
      }
    } catch (Broken& broken) {
      result_.broken = describe(broken, at_);
    }
    if (options_.record_times) result_.times.push_back(result_.cost);
    if (options_.record_residences) end_residences();
    return std::move(result_);
  }

  // Returns the values that are resident now, or made by or arriving with the given action.
  std::vector<Id> resident_with(const Action& action) {
    if (action.kind == Action::Kind::run) {
      for (const Id v : timeline_.hold_starts(action.target)) make_resident(v);
    }
    if (action.kind == Action::Kind::run || action.kind == Action::Kind::replay) {
      for (const Id v : trace_.outputs(action.target)) make_resident(v);
    } else if (action.kind == Action::Kind::get) {
      make_resident(action.target);
    }
    std::vector<Id> values;
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (resident(v)) values.push_back(v);
    }
    return values;
  }

 private:
  // ---- the five actions -------------------------------------------------------------------------------------------

  void execute(const Action& action, std::size_t at) {
    switch (action.kind) {
      case Action::Kind::run: return run_moment(action.target);
      case Action::Kind::replay: return replay(action.target);
      case Action::Kind::drop: return drop(action.target);
      case Action::Kind::put: return put(action.target, action.tier, at);
      case Action::Kind::get: return get(action.target, action.tier, at);
    }
    throw Broken{Rule::known, {}, "there is no such action"};
  }

  void run_moment(Id m) {
    require_moment(m);
    if (m != next_) {
      throw Broken{Rule::run_once, {}, m < next_ ? "it has run already" : fmt::format("moment {} is next", next_)};
    }
    for (const Id v : timeline_.hold_starts(m)) {
      const Id made = timeline_.made_at(v);
      if (made == m) continue;  // held from its making, below
      if (made != nowhere) {
        require_resident(v, "the program holds it from here on");
        clocks_.wait_for_transfers(v);
      }
      if (made == nowhere) make_resident(v);  // it arrives
      hold(v);
    }
    for (const Id v : trace_.inputs(m)) need(v, "it is an input");
    for (const Id v : trace_.outputs(m)) {
      if (const auto& input = trace_.values[v].takes_over) end_taken_over(*input);
      make_resident(v);
      if (trace_.values[v].held && trace_.values[v].held->first == m) hold(v);
    }
    occupy(trace_.workspace(m));
    clocks_.compute(trace_.cost(m));
    ++next_;
    for (const Id v : timeline_.hold_ends(m)) release_hold(v);
  }

  void replay(Id m) {
    require_moment(m);
    if (m >= next_) throw Broken{Rule::has_run, {}, "it has not run yet"};
    if (!trace_.replayable(m)) {
      throw Broken{
          Rule::replayable, {}, trace_.moments[m].runs ? "its operator may not be replayed" : "it is an event"};
    }
    for (const Id v : trace_.inputs(m)) need(v, "it is an input");
    Bytes made_again = 0;  // outputs that are resident already are made a second time and go when the replay ends
    for (const Id v : trace_.outputs(m)) {
      if (resident(v)) made_again += bytes(v);
    }
    for (const Id v : trace_.outputs(m)) make_resident(v);
    occupy(made_again + trace_.workspace(m));
    clocks_.compute(trace_.cost(m));
    result_.replay_cost += trace_.cost(m);
    ++result_.replays;
  }

  void drop(Id v) {
    require_value(v);
    if (!undropped_[v]) {
      throw Broken{Rule::resident, v,
                   held_[v] ? "it was dropped already, only the program holds it" : "it is not resident"};
    }
    undropped_[v] = 0;
    if (!held_[v]) leave(v, at_);
    live_ = resident_bytes_ + counted_tier_bytes_ + other_;  // frees only: never a peak, never against the budget
  }

  void put(Id v, Id t, std::size_t at) {
    const TierEntry& entry = require_entry(v, t);
    require_resident(v, "it is to be put into a tier");
    if (has_copy(v, t)) throw Broken{Rule::in_tier, v, fmt::format("{} already has a copy", tier_name(t))};
    last_get_[key(v, t)] = last_get_of_put_[at];
    const Tier& tier = plan_.tiers[t];
    if (tier.capacity && tier_bytes_[t] + entry.bytes > *tier.capacity) {
      throw Broken{Rule::capacity, v,
                   fmt::format("{} holds {} of {} bytes, {} more do not fit", tier_name(t), tier_bytes_[t],
                               *tier.capacity, entry.bytes)};
    }
    tier_bytes_[t] += entry.bytes;
    result_.tier_peaks[t] = std::max(result_.tier_peaks[t], tier_bytes_[t]);
    if (tier.in_budget) counted_tier_bytes_ += entry.bytes;
    residences_.put(v, t, at);
    occupy(0);
    record(at, clocks_.put(v, t, entry));
    if (held_[v]) clocks_.wait_for_transfers(v);
    result_.tier_cost += entry.put_cost;
    ++result_.puts;
  }

  void get(Id v, Id t, std::size_t at) {
    const TierEntry& entry = require_entry(v, t);
    if (!has_copy(v, t)) throw Broken{Rule::in_tier, v, fmt::format("{} has no copy", tier_name(t))};
    if (resident(v)) throw Broken{Rule::not_resident, v, "it is resident already"};
    make_resident(v);
    occupy(0);
    record(at, clocks_.get(v, t, entry));
    result_.tier_cost += entry.get_cost;
    ++result_.gets;
    if (last_get_[key(v, t)] == at) {
      last_get_.erase(key(v, t));
      tier_bytes_[t] -= entry.bytes;
      if (plan_.tiers[t].in_budget) counted_tier_bytes_ -= entry.bytes;
      residences_.leave_tier(v, t, at + 1);
    }
  }

  // ---- what is where ----------------------------------------------------------------------------------------------

  Bytes bytes(Id v) const { return trace_.values[v].bytes; }
  bool resident(Id v) const { return undropped_[v] || held_[v]; }
  bool has_copy(Id v, Id t) const { return last_get_.count(key(v, t)) != 0; }

  void make_resident(Id v) {
    if (!resident(v)) arrive(v);
    undropped_[v] = 1;
  }
  void hold(Id v) {
    if (!resident(v)) arrive(v);
    held_[v] = 1;
  }
  void release_hold(Id v) {
    if (held_[v] && !undropped_[v]) leave(v, at_ + 1);  // it was there while the moment ran
    held_[v] = 0;
  }
  void end_taken_over(Id v) {
    leave(v, at_);
    undropped_[v] = held_[v] = 0;
  }

  void arrive(Id v) {
    resident_bytes_ += bytes(v);
    clocks_.arrive(v);
    const bool from_outside = origin_ == Residence::Origin::run && timeline_.made_at(v) == nowhere;
    residences_.arrive(v, from_outside ? Residence::Origin::outside : origin_, at_);
  }
  void leave(Id v, std::size_t end) {  // `end`: the first action that takes place without it
    resident_bytes_ -= bytes(v);
    clocks_.wait_for_transfers(v);
    residences_.leave(v, end);
  }
  void record(std::size_t action, const Clocks::Span& span) {
    if (options_.record_times) result_.transfers.push_back({action, span.begin, span.end});
  }
  void end_residences() {
    for (Id v = 0; v < trace_.value_count(); ++v) {
      if (resident(v)) residences_.leave(v, at_);
    }
    result_.residences = residences_.take(at_);
  }
  static Residence::Origin origin_of(Action::Kind kind) {
    return kind == Action::Kind::replay ? Residence::Origin::replay
           : kind == Action::Kind::get  ? Residence::Origin::get
                                        : Residence::Origin::run;
  }

  // Sets and checks the live bytes of this action. It takes place at the next moment to run (at the end of the plan,
  // the last one), and needs `extra` bytes in addition to what is resident.
  void occupy(Bytes extra) {
    const Id at = std::min(next_, trace_.moment_count() - 1);
    other_ = at < 0 ? 0 : trace_.moments[at].other;
    live_ = resident_bytes_ + counted_tier_bytes_ + other_ + extra;
    if (options_.check_budget && live_ > plan_.budget) {
      throw Broken{
          Rule::budget,
          {},
          fmt::format("{} bytes are live, {} above the budget of {}", live_, live_ - plan_.budget, plan_.budget)};
    }
  }

  // A copy leaves its tier with the last get before the value is put there again; a copy without a get stays.
  void find_last_gets() {
    last_get_of_put_.assign(plan_.actions.size(), never);
    std::unordered_map<std::uint64_t, std::size_t> open;
    for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
      const Action& action = plan_.actions[i];
      if (action.kind == Action::Kind::put) open[key(action.target, action.tier)] = i;
      if (action.kind != Action::Kind::get) continue;
      const auto put = open.find(key(action.target, action.tier));
      if (put != open.end()) last_get_of_put_[put->second] = i;
    }
  }

  static std::uint64_t key(Id v, Id t) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(v)) << 32 | static_cast<std::uint32_t>(t);
  }

  // ---- rules that several actions share ---------------------------------------------------------------------------

  void require_moment(Id m) const {
    if (m < 0 || m >= trace_.moment_count()) {
      throw Broken{Rule::known, {}, fmt::format("the trace has {} moments", trace_.moment_count())};
    }
  }
  void require_value(Id v) const {
    if (v < 0 || v >= trace_.value_count()) {
      throw Broken{Rule::known, {}, fmt::format("the trace has {} values", trace_.value_count())};
    }
  }
  void require_resident(Id v, const char* why) const {
    if (!resident(v)) throw Broken{Rule::resident, v, fmt::format("{}, but it is not resident", why)};
  }
  void need(Id v, const char* why) {
    require_resident(v, why);
    clocks_.need(v);
  }
  const TierEntry& require_entry(Id v, Id t) const {
    require_value(v);
    if (t < 0 || t >= static_cast<Id>(plan_.tiers.size())) {
      throw Broken{Rule::known, v, fmt::format("the plan has {} tiers", plan_.tiers.size())};
    }
    const TierEntry* entry = plan_.tiers[t].find(v);
    if (!entry) throw Broken{Rule::in_tier, v, fmt::format("{} does not accept it", tier_name(t))};
    return *entry;
  }

  // ---- errors -----------------------------------------------------------------------------------------------------

  std::string quoted(Id m) const { return fmt::format("'{}'", printable(trace_.label(m))); }
  std::string tier_name(Id t) const { return fmt::format("tier '{}'", printable(plan_.tiers[t].name)); }

  BrokenRule describe(const Broken& broken, std::size_t at) const {
    std::string text;
    if (at < plan_.actions.size()) {
      const Action& action = plan_.actions[at];
      const bool names_moment = action.kind == Action::Kind::run || action.kind == Action::Kind::replay;
      text = fmt::format("action {}, {} {}", at, name(action.kind), action.target);
      if (names_moment && action.target >= 0 && action.target < trace_.moment_count()) {
        text += " " + quoted(action.target);
      }
    } else {
      text = "at the end of the plan";
    }
    if (broken.value) text += fmt::format(", value {} ({} bytes)", *broken.value, bytes(*broken.value));
    return {broken.rule, at, broken.value, fmt::format("{}: {} (rule: {})", text, broken.why, name(broken.rule))};
  }

  const Trace& trace_;
  const Plan& plan_;
  const SimulateOptions& options_;
  const Timeline timeline_;

  std::size_t at_ = 0;                                     // this action
  Residence::Origin origin_ = Residence::Origin::outside;  // of what arrives with this action
  Id next_ = 0;                                            // the moment to run next
  std::vector<char> undropped_;                            // by value: made or got, and not dropped by the plan
  std::vector<char> held_;                                 // by value: the program holds it now
  Bytes resident_bytes_ = 0;
  std::vector<Bytes> tier_bytes_;
  Bytes counted_tier_bytes_ = 0;              // in tiers that count in the budget
  Bytes other_ = 0;                           // of the moment that the last action other than a drop took place at
  std::vector<std::size_t> last_get_of_put_;  // by action
  std::unordered_map<std::uint64_t, std::size_t> last_get_;  // copies in tiers: the action after which they leave
  Clocks clocks_;
  Residences residences_;
  Bytes live_ = 0;  // live bytes while this action takes place
  Simulation result_;
};

}  // namespace

const char* name(Rule rule) {
  switch (rule) {
    case Rule::known: return "known";
    case Rule::run_once: return "run once, in order";
    case Rule::has_run: return "replay only what has run";
    case Rule::replayable: return "replay only what may be replayed";
    case Rule::resident: return "resident";
    case Rule::not_resident: return "get only what is not resident";
    case Rule::in_tier: return "in tier";
    case Rule::capacity: return "capacity";
    case Rule::budget: return "budget";
    case Rule::complete: return "complete";
  }
  return "unknown";
}

Simulation simulate(const Trace& trace, const Plan& plan, const SimulateOptions& options) {
  return Interpreter(trace, plan, options).run();
}

std::vector<Id> resident_at(const Trace& trace, const Plan& plan, std::size_t action) {
  Plan before = plan;
  before.actions.resize(action);
  const SimulateOptions options{.record_live = false, .check_budget = false};
  Interpreter interpreter(trace, before, options);
  (void)interpreter.run();  // incomplete by intent
  return interpreter.resident_with(plan.actions[action]);
}

}  // namespace reprise
