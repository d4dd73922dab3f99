#include "reprise/trace/trace.h"

#include <algorithm>

#include "reprise/trace/plan.h"

namespace reprise {
namespace {
const std::vector<Id> no_values;
}

const TierEntry* Tier::find(Id value) const {
  const auto at = std::lower_bound(entries.begin(), entries.end(), value,
                                   [](const TierEntry& entry, Id wanted) { return entry.value < wanted; });
  return at != entries.end() && at->value == value ? &*at : nullptr;
}

bool Tier::overlaps() const {
  return std::any_of(entries.begin(), entries.end(),
                     [](const TierEntry& entry) { return entry.put_time > 0 || entry.get_time > 0; });
}

const std::vector<Id>& Trace::inputs(Id moment) const {
  const Moment& m = moments[moment];
  return m.runs ? operators[*m.runs].inputs : m.needs;
}

const std::vector<Id>& Trace::outputs(Id moment) const {
  const Moment& m = moments[moment];
  return m.runs ? operators[*m.runs].outputs : no_values;
}

double Trace::cost(Id moment) const {
  const Moment& m = moments[moment];
  return m.runs ? operators[*m.runs].cost : m.cost;
}

Bytes Trace::workspace(Id moment) const {
  const Moment& m = moments[moment];
  return m.runs ? operators[*m.runs].workspace : 0;
}

bool Trace::replayable(Id moment) const {
  const Moment& m = moments[moment];
  return m.runs && operators[*m.runs].replayable;
}

const std::string& Trace::label(Id moment) const {
  const Moment& m = moments[moment];
  return m.runs ? operators[*m.runs].name : m.name;
}

bool Trace::is_event(Id moment) const {
  const Moment& m = moments[moment];
  return !m.runs || operators[*m.runs].event;
}

double Trace::total_cost() const {
  double sum = 0;
  for (Id m = 0; m < moment_count(); ++m) sum += cost(m);
  return sum;
}

const char* name(Action::Kind kind) {
  switch (kind) {
    case Action::Kind::run: return "run";
    case Action::Kind::replay: return "replay";
    case Action::Kind::drop: return "drop";
    case Action::Kind::put: return "put";
    case Action::Kind::get: return "get";
  }
  return "unknown";
}

}  // namespace reprise
