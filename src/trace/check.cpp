#include "trace/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reprise/trace/error.h"

namespace reprise::internal {
namespace {

// One less than the largest id, so that a count, and an id one past the end, are ids too.
constexpr std::size_t largest_count = static_cast<std::size_t>(std::numeric_limits<Id>::max()) - 1;

constexpr Id none = -1;

[[noreturn]] void fail(const PlaceInTrace& place, const std::string& reason) {
  throw BadInput("", place.text(), reason);
}

void check_count(const char* list, std::size_t count) {
  if (count > largest_count) throw BadInput("", list, fmt::format("{} are more than {}", count, largest_count));
}

void check_id(Id id, std::size_t count, const char* list, const PlaceInTrace& place) {
  if (id < 0 || static_cast<std::size_t>(id) >= count) {
    fail(place, fmt::format("{} is not in {}, which has {}", id, list, count));
  }
}

// The steps read from `check` at the end. Each relies on the ones before it: ids first, so that the rest can use them.
class Checker {
 public:
  explicit Checker(const Trace& trace) : trace_(trace) {}

  void counts() {
    check_count("operators", trace_.operators.size());
    check_count("values", trace_.values.size());
    check_count("moments", trace_.moments.size());
  }

  void amounts() {
    Totals totals;
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      totals.add_cost(trace_.operators[i].cost, {"operators", i, "cost"});
      totals.add_bytes(trace_.operators[i].workspace, {"operators", i, "workspace"});
    }
    for (std::size_t i = 0; i < trace_.values.size(); ++i) {
      totals.add_bytes(trace_.values[i].bytes, {"values", i, "bytes"});
    }
    for (std::size_t i = 0; i < trace_.moments.size(); ++i) {
      totals.add_cost(trace_.moments[i].cost, {"moments", i, "cost"});
      totals.add_bytes(trace_.moments[i].other, {"moments", i, "other"});
    }
    check_tiers(trace_.tiers, trace_.values.size(), totals);
  }

  void moments() {
    moment_of_.assign(trace_.operators.size(), none);
    for (Id m = 0; m < trace_.moment_count(); ++m) {
      const Moment& moment = trace_.moments[m];
      if (!moment.runs) continue;
      check_id(*moment.runs, trace_.operators.size(), "operators", at("moments", m, "runs"));
      if (const Id other = moment_of_[*moment.runs]; other != none) {
        fail(at("moments", m, "runs"), fmt::format("moment {} already runs operator {}", other, *moment.runs));
      }
      moment_of_[*moment.runs] = m;
      const char* extra = !moment.name.empty() ? "name" : !moment.needs.empty() ? "needs" : "cost";
      if (!moment.name.empty() || !moment.needs.empty() || moment.cost != 0) {
        fail(at("moments", m, extra),
             "only an event has this; a moment that runs an operator leaves it to the operator");
      }
    }
    for (Id op = 0; op < static_cast<Id>(moment_of_.size()); ++op) {
      if (moment_of_[op] == none) fail(at("operators", op), "no moment runs it");
      const Operator& run = trace_.operators[op];
      if (run.event && (run.replayable || !run.outputs.empty())) {
        fail(at("operators", op, "event"), "an event has no outputs and is not replayable");
      }
    }
  }

  // Lists of values: known, and none twice.
  void lists() {
    std::vector<std::size_t> seen(trace_.values.size(), 0);
    std::size_t round = 0;
    const auto check_list = [&](const std::vector<Id>& list, const char* records, Id index, const char* field) {
      ++round;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const PlaceInTrace place = at(records, index, field, i);
        check_id(list[i], trace_.values.size(), "values", place);
        if (seen[list[i]] == round) fail(place, fmt::format("value {} is named twice", list[i]));
        seen[list[i]] = round;
      }
    };
    for (Id op = 0; op < static_cast<Id>(trace_.operators.size()); ++op) {
      check_list(trace_.operators[op].inputs, "operators", op, "inputs");
      check_list(trace_.operators[op].outputs, "operators", op, "outputs");
    }
    for (Id m = 0; m < trace_.moment_count(); ++m) check_list(trace_.moments[m].needs, "moments", m, "needs");
  }

  // A value with a maker is an output of it, and the other way round.
  void makers() {
    std::vector<char> is_output(trace_.values.size(), 0);
    for (Id op = 0; op < static_cast<Id>(trace_.operators.size()); ++op) {
      const auto& outputs = trace_.operators[op].outputs;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& maker = trace_.values[outputs[i]].maker;
        if (maker != op) {
          fail(at("operators", op, "outputs", i),
               maker ? fmt::format("value {} says that operator {} makes it", outputs[i], *maker)
                     : fmt::format("value {} says that it comes from outside", outputs[i]));
        }
        is_output[outputs[i]] = 1;
      }
    }
    for (Id v = 0; v < trace_.value_count(); ++v) {
      const auto& maker = trace_.values[v].maker;
      if (!maker) continue;
      check_id(*maker, trace_.operators.size(), "operators", at("values", v, "maker"));
      if (!is_output[v]) fail(at("values", v, "maker"), fmt::format("it is not an output of operator {}", *maker));
    }
  }

  void held_stretches() {
    for (Id v = 0; v < trace_.value_count(); ++v) {
      const auto& held = trace_.values[v].held;
      if (!held) continue;
      const auto fail_held = [&](const std::string& reason) {
        fail(at("values", v, "held"), fmt::format("moments {} to {}: {}", held->first, held->last, reason));
      };
      if (held->first < 0 || held->last >= trace_.moment_count()) {
        fail_held(fmt::format("the trace has {} moments", trace_.moment_count()));
      }
      if (held->first > held->last) fail_held("it ends before it starts");
      if (made_at(v) > held->first) fail_held(fmt::format("the value is made at moment {} only", made_at(v)));
    }
  }

  // What a moment needs is there by then: made earlier, or from outside and arrived.
  void order() {
    last_needed_.assign(trace_.values.size(), none);
    for (Id m = 0; m < trace_.moment_count(); ++m) {
      const auto& runs = trace_.moments[m].runs;
      const auto& inputs = trace_.inputs(m);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Id v = inputs[i];
        const PlaceInTrace place = runs ? at("operators", *runs, "inputs", i) : at("moments", m, "needs", i);
        const Value& value = trace_.values[v];
        if (runs && value.maker == runs) fail(place, fmt::format("value {} is its own output: a cycle", v));
        if (made_at(v) > m) {
          fail(place, fmt::format("moment {} needs value {}, which is made at moment {}: a cycle or a wrong order", m,
                                  v, made_at(v)));
        }
        if (!value.maker && value.held && value.held->first > m) {
          fail(place, fmt::format("moment {} needs value {}, which arrives from outside at moment {}", m, v,
                                  value.held->first));
        }
        last_needed_[v] = m;
      }
    }
  }

  void taken_over() {
    std::vector<Id> taken_by(trace_.values.size(), none);
    for (Id v = 0; v < trace_.value_count(); ++v) {
      const Value& value = trace_.values[v];
      if (!value.takes_over) continue;
      const PlaceInTrace place = at("values", v, "takes_over");
      const Id input = *value.takes_over;
      check_id(input, trace_.values.size(), "values", place);
      if (!value.maker) fail(place, "it comes from outside and has no input whose storage it could take over");
      const Id m = made_at(v);
      // An input of m that is not needed later has m as its last moment: a search is only necessary for the error.
      if (last_needed_[input] != m) {
        const auto& inputs = trace_.inputs(m);
        const bool is_input = std::find(inputs.begin(), inputs.end(), input) != inputs.end();
        fail(place,
             is_input ? fmt::format("value {} ends at moment {}, but moment {} needs it", input, m, last_needed_[input])
                      : fmt::format("value {} is not an input of operator {}", input, *value.maker));
      }
      if (const Bytes there = trace_.values[input].bytes; there != value.bytes) {
        fail(place, fmt::format("value {} has {} bytes, this one {}", input, there, value.bytes));
      }
      if (taken_by[input] != none) {
        fail(place, fmt::format("value {} already takes over value {}", taken_by[input], input));
      }
      taken_by[input] = v;
      if (const auto& held = trace_.values[input].held; held && held->last > m) {
        fail(place, fmt::format("value {} ends at moment {}, but is held until {}", input, m, held->last));
      }
    }
  }

 private:
  // Returns the moment that makes the value, before all of them for one from outside.
  Id made_at(Id v) const {
    const auto& maker = trace_.values[v].maker;
    return maker ? moment_of_[*maker] : none;
  }

  static PlaceInTrace at(const char* list, Id index, const char* field = nullptr,
                         std::optional<std::size_t> item = {}) {
    return {list, static_cast<std::size_t>(index), field, item};
  }

  const Trace& trace_;
  std::vector<Id> moment_of_;    // by operator
  std::vector<Id> last_needed_;  // by value: the last moment it is an input of
};

}  // namespace

std::string PlaceInTrace::text() const {
  std::string text = fmt::format("{}[{}]", list, index);
  if (field) text += fmt::format(".{}", field);
  if (item) text += fmt::format("[{}]", *item);
  return text;
}

void Totals::add_bytes(Bytes bytes, const PlaceInTrace& place) {
  if (bytes < 0) fail(place, fmt::format("{} bytes are negative", bytes));
  if (bytes > largest_bytes_) {
    largest_bytes_ = bytes;
    largest_bytes_place_ = place;
  }
  if (bytes >= largest_bytes - bytes_) {
    fail(largest_bytes_place_,
         fmt::format("{} bytes are too many: all bytes together have to stay below {}", largest_bytes_, largest_bytes));
  }
  bytes_ += bytes;
}

void Totals::add_cost(double cost, const PlaceInTrace& place) {
  if (!std::isfinite(cost)) fail(place, "a cost has to be a number");
  if (cost < 0) fail(place, fmt::format("a cost of {} is negative", cost));
  if (cost > largest_cost_) {
    largest_cost_ = cost;
    largest_cost_place_ = place;
  }
  cost_ += cost;
  if (cost_ >= largest_cost) {
    fail(largest_cost_place_, fmt::format("a cost of {} is too large: all costs together have to stay below {}",
                                          largest_cost_, largest_cost));
  }
}

void check_tiers(const std::vector<Tier>& tiers, std::optional<std::size_t> values, Totals& totals) {
  check_count("tiers", tiers.size());
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const Tier& tier = tiers[t];
    if (tier.capacity && *tier.capacity < 0) {
      fail({"tiers", t, "capacity"}, fmt::format("{} bytes are negative", *tier.capacity));
    }
    for (std::size_t i = 0; i < tier.entries.size(); ++i) {
      const TierEntry& entry = tier.entries[i];
      const PlaceInTrace place{"tiers", t, "entries", i};
      check_id(entry.value, values.value_or(largest_count), "values", place);
      if (i > 0 && entry.value <= tier.entries[i - 1].value) {
        fail(place, fmt::format("value {} comes after value {}: entries ascend by value and name none twice",
                                entry.value, tier.entries[i - 1].value));
      }
      totals.add_bytes(entry.bytes, place);
      totals.add_cost(entry.put_cost, place);
      totals.add_cost(entry.get_cost, place);
      totals.add_cost(entry.put_time, place);
      totals.add_cost(entry.get_time, place);
      if (tier.in_budget && (entry.put_time > 0 || entry.get_time > 0)) {
        fail(place, "a tier in the budget has no transfers beside the computation: put_time and get_time have to be 0");
      }
    }
  }
}

void check(const Plan& plan) {
  if (plan.budget < 0) throw BadInput("", "budget", fmt::format("{} bytes are negative", plan.budget));
  Totals totals;
  check_tiers(plan.tiers, {}, totals);
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Action& action = plan.actions[i];
    if (action.target < 0 || action.tier < 0) fail({"actions", i}, "a negative id");
  }
}

}  // namespace reprise::internal

namespace reprise {

void check(const Trace& trace) {
  internal::Checker checker(trace);
  checker.counts();
  checker.amounts();
  checker.moments();
  checker.lists();
  checker.makers();
  checker.held_stretches();
  checker.order();
  checker.taken_over();
}

}  // namespace reprise
