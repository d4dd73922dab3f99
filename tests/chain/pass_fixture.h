// The collaborators of a chain's engine, each to be tested by itself: states that are lists of bytes, in a chain whose
// layers write down their calls.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chain/chain_context.h"
#include "chain/pass_executor.h"
#include "chain/pass_keeper.h"
#include "chain/pass_sizes.h"
#include "chain/states_by_hand.h"
#include "reprise/chain/internal/typed_states.h"

namespace reprise::testing {

using List = std::vector<std::uint8_t>;

// Layer k adds k + 1 to every byte, and makes `sizes[k]` of them if that is there.
struct PassFixture {
  explicit PassFixture(int layers) : context(ChainLayers(layers), false, states) {}

  internal::TypedStates<List, List, NoTape> states{
      {.by_value = [this](int layer, const List& x) { return forward(layer, x); }, .in_place = {}, .into = {}},
      [this](int layer, const List&, List gradient) {
        calls += " -" + std::to_string(layer);
        return gradient;
      }};
  std::map<int, std::size_t> sizes;
  std::string calls;  // of forward by number, of backward with a minus
  List gradient = List(8);

  internal::ChainContext context;
  internal::PassSizes pass_sizes{context};
  internal::PassKeeper keeper{context, pass_sizes};
  internal::StatesByHand by_hand{context, keeper};
  internal::PassExecutor executor{context, pass_sizes, keeper};

  // Begins a pass through all layers, as the engine does, and returns the slot of its input.
  Id begin(List input = List(8)) {
    context.pass.begin(internal::ChainPass::LoopOwner::engine, 0);
    const Id slot = states.put(std::move(input));
    const internal::InputSizes sizes_of_input = pass_sizes.input_sizes(slot, context.tiers.next_settings());
    context.pass.actions.emplace(context.setup.begin(context.tiers.next_settings(), sizes_of_input));
    context.tiers.begin(context.setup.transit());
    pass_sizes.begin_part();
    executor.begin_part();
    states.work_on(gradient);
    return slot;
  }
  std::string take_calls() { return std::exchange(calls, ""); }

 private:
  List forward(int layer, const List& x) {
    calls += " " + std::to_string(layer);
    const auto size = sizes.find(layer);
    List y(size == sizes.end() ? x.size() : size->second);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::uint8_t>(x[i % x.size()] + layer + 1);
    return y;
  }
};

}  // namespace reprise::testing
