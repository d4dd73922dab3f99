// Traces made by hand, in the order of their timeline. The members of the trace stay open for whatever else a test
// wants.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reprise/trace/trace.h"

namespace reprise::testing {

class SmallTrace {
 public:
  // A value from outside.
  Id outside(Bytes bytes, std::optional<Stretch> held = {}) {
    Value value;
    value.bytes = bytes;
    value.held = held;
    trace.values.push_back(value);
    return trace.value_count() - 1;
  }

  // A moment that runs an operator; gives the moment. Its outputs get the next free ids.
  Id run(std::vector<Id> inputs, const std::vector<Bytes>& outputs, double cost = 1, Bytes workspace = 0) {
    const Id index = static_cast<Id>(trace.operators.size());
    Operator op;
    op.name = "operator " + std::to_string(index);
    op.inputs = std::move(inputs);
    op.cost = cost;
    op.workspace = workspace;
    for (const Bytes bytes : outputs) {
      op.outputs.push_back(outside(bytes));
      trace.values.back().maker = index;
    }
    trace.operators.push_back(std::move(op));
    trace.moments.emplace_back().runs = index;
    return trace.moment_count() - 1;
  }

  // A moment that is an event; gives the moment.
  Id event(std::vector<Id> needs, double cost = 0) {
    Moment& moment = trace.moments.emplace_back();
    moment.name = "event " + std::to_string(trace.moments.size() - 1);
    moment.needs = std::move(needs);
    moment.cost = cost;
    return trace.moment_count() - 1;
  }

  // An event that is written as an operator, for its workspace; gives the moment.
  Id event_with_workspace(std::vector<Id> needs, Bytes workspace, double cost = 0) {
    const Id moment = run(std::move(needs), {}, cost, workspace);
    trace.operators.back().replayable = false;
    trace.operators.back().event = true;
    return moment;
  }

  Trace trace;
};

}  // namespace reprise::testing
