// A model of the executor of a chain: a plan, read aloud with tables of values, one action after the other.
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "chain/uneven.h"
#include "reprise/store/codec.h"
#include "reprise/trace/plan.h"

namespace reprise::testing {

// What a codec gives back of these numbers.
inline Numbers after_codec(const Codec* codec, const Numbers& numbers) {
  const ArrayView array(numbers);
  const auto room = codec ? codec->room(array) : std::nullopt;
  if (!room) return numbers;
  std::vector<std::byte> coded(*room);
  const auto bytes = codec->encode(array, coded);
  if (!bytes) return numbers;
  Numbers result(numbers.size());
  codec->decode(std::span(coded).first(*bytes), array.element(), std::as_writable_bytes(std::span(result)));
  return result;
}

struct ModelRun {
  Numbers gradient;
  std::uint64_t forward_calls = 0;
};

// Executes a plan for the layers from `first` on, from this state, and goes backward from this gradient.
inline ModelRun run_plan(const Plan& plan, const Uneven& net, int first, bool tapes, const Codec* codec,
                         const Numbers& input, const Numbers& gradient) {
  const Id layers = net.layers() - first;
  ModelRun run{gradient, 0};
  std::map<Id, Numbers> values{{0, input}};
  std::map<std::pair<Id, Id>, Numbers> copies;  // by tier and value
  const auto state_value = [&](Id state) { return tapes ? 2 * state : state; };
  for (const Action& action : plan.actions) {
    switch (action.kind) {
      case Action::Kind::run:
      case Action::Kind::replay:
        if (action.target < layers) {
          Numbers tape;
          values[state_value(action.target + 1)] =
              net.forward(first + action.target, values.at(state_value(action.target)), tapes ? &tape : nullptr);
          if (tapes) values[2 * action.target + 1] = tape;
          ++run.forward_calls;
        } else {
          const Id layer = 2 * layers - 1 - action.target;
          run.gradient = net.backward(first + layer, values.at(state_value(layer)),
                                      tapes ? &values.at(2 * layer + 1) : nullptr, run.gradient);
        }
        break;
      case Action::Kind::drop:
        if (values.erase(action.target) == 0) throw std::logic_error("dropped what is not there");
        break;
      case Action::Kind::put:
        copies[{action.tier, action.target}] = after_codec(codec, values.at(action.target));
        break;
      case Action::Kind::get: values[action.target] = copies.at({action.tier, action.target}); break;
    }
  }
  return run;
}

}  // namespace reprise::testing
