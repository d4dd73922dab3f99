// What the collaborators of ChainEngine work on together: the caller's states and closures, the settings, what is
// stored where, and the pass that goes on.
#pragma once

#include <functional>

#include "chain/chain_pass.h"
#include "chain/held_states.h"
#include "chain/setup.h"
#include "chain/state_tiers.h"
#include "chain/storage_account.h"
#include "chain/verification.h"

namespace reprise::internal {

struct ChainContext {
  ChainContext(ChainLayers layers, bool tapes, ChainStates& of)
      : states(of), setup(std::move(layers), tapes), account(states, tiers), held(states, account) {}
  ChainContext(const ChainContext&) = delete;
  ChainContext& operator=(const ChainContext&) = delete;

  ChainStates& states;
  ChainSetup setup;
  StateTiers tiers;
  StorageAccount account;
  HeldStates held;
  Verification verification;
  std::function<void(const ChainProgress&)> observer;
  ChainPass pass;

  [[nodiscard]] const ChainLayers& layers() const { return setup.layers(); }
  // Returns the caller's number of a layer of the part.
  [[nodiscard]] int number(Id layer) const { return layers().number(pass.first + layer); }
  // Return how many layers there are, as far as that is known: in the part, and in all.
  [[nodiscard]] Id part_size() const { return pass.actions ? pass.actions->layers() : layers().size(); }
  [[nodiscard]] Id size() const { return layers().known() ? layers().size() : part_size(); }
  [[nodiscard]] Verify verify() const { return verification.effective(states, layers().size()); }
  // Returns the form of the part.
  [[nodiscard]] ChainForm form() const {
    if (pass.actions->form()) return *pass.actions->form();
    ChainForm form = setup.form_of_part(pass.actions->first(), pass.actions->first() + part_size(), tiers.settings());
    pass.actions->enter_costs(form);
    return form;
  }

  [[nodiscard]] ChainStates::Made call_forward(Id layer, Id input, bool with_tape) {
    ++account.statistics.forward_calls;
    return states.forward(number(layer), input, with_tape);
  }
  // Calls the observer, if there is one, after a closure of this layer.
  void report(ChainProgress::Phase phase, Id layer) {
    if (!observer) return;
    observer({phase, pass.first + layer, number(layer), account.statistics.replays, account.statistics.stored, 0});
  }
};

}  // namespace reprise::internal
