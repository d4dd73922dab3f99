#include "chain/kept_room.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace reprise::internal {
namespace {

// The files, by the rules of kept_pass.h, if all that is written is safe at once.
class KeptFiles {
 public:
  explicit KeptFiles(KeptTerms terms) : terms_(std::move(terms)), now_(terms_.before), most_(now_) {}

  void add(Bytes bytes) { most_ = std::max(most_, now_ += bytes); }
  void state(Id state) {
    if (terms_.there.insert(state).second) add(terms_.state(state));
  }
  // The gradient takes the tier of the one before it, and of the states from here on.
  void gradient(Id state) {
    if (!terms_.there.contains(state)) return;
    const Bytes bytes = terms_.gradient(state);
    if (bytes == 0) return;
    add(bytes);
    now_ -= std::exchange(gradient_, bytes);
    for (auto at = terms_.there.lower_bound(state); at != terms_.there.end(); at = terms_.there.erase(at)) {
      now_ -= terms_.state(*at);
    }
  }
  [[nodiscard]] const KeptTerms& terms() const { return terms_; }
  [[nodiscard]] Bytes most() const { return most_; }

 private:
  KeptTerms terms_;
  Bytes now_, most_, gradient_ = 0;
};

}  // namespace

Bytes most_kept(ChainPass pass, KeptTerms of) {
  const Id layers = pass.layers();
  KeptFiles files(std::move(of));
  const KeptTerms& terms = files.terms();
  files.state(0);
  std::vector<bool> held(static_cast<std::size_t>(layers) + 1, false);
  held[0] = true;
  Id position = 0;  // layers that have run
  bool in_forward = true;
  const auto keep_if_held = [&](Id state) {
    if (terms.keeps_remembered && state >= 0 && held[state]) files.state(state);
  };
  for (;;) {
    const Action* next = pass.next();
    if (!next && pass.decides() && position < layers) pass.prepare_forward(), next = pass.next();
    const bool goes_on = next && (next->kind == Action::Kind::drop || next->kind == Action::Kind::put);
    if (in_forward && position == layers && !goes_on) {
      in_forward = false;
      pass.turn();
      keep_if_held(layers - 1);
      files.add(terms.at_turn);
      next = pass.next();
    }
    if (!next) return files.most();
    const Action action = *next;
    pass.took();
    if (action.kind == Action::Kind::run && action.target >= layers) {
      files.gradient(2 * layers - 1 - action.target);
    } else if (action.kind == Action::Kind::run) {
      keep_if_held(action.target - 1);
      held[action.target + 1] = true;
      position = action.target + 1;
      if (pass.decides()) pass.ran(action.target, terms.forward_cost(action.target));
    } else if (action.kind == Action::Kind::put) {
      const bool remembered = in_forward && terms.keeps_remembered;
      if (remembered || pass.is_disk(action.tier)) files.state(pass.state_of(action.target));
    } else if (action.kind == Action::Kind::drop && !pass.is_tape(action.target)) {
      held[pass.state_of(action.target)] = false;
    }
  }
}

}  // namespace reprise::internal
