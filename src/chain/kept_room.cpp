#include "chain/kept_room.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace reprise::internal {
namespace {

// The files of a pass by the rules of kept_pass.h, as if all that is written were safe at once.
class KeptFiles {
 public:
  explicit KeptFiles(KeptSizes terms) : terms_(std::move(terms)), now_(terms_.before), most_(now_) {}

  void add(Bytes bytes) { most_ = std::max(most_, now_ += bytes); }
  void state(Id state) {
    if (terms_.there.insert(state).second) add(terms_.state(state));
  }
  // Replaces the gradient before it, and the states from this one on.
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
  [[nodiscard]] const KeptSizes& terms() const { return terms_; }
  [[nodiscard]] Bytes most() const { return most_; }

 private:
  KeptSizes terms_;
  Bytes now_, most_, gradient_ = 0;
};

}  // namespace

Bytes most_kept_bytes(PassActions pass, KeptSizes of) {
  const Id layers = pass.layers();
  KeptFiles files(std::move(of));
  const KeptSizes& terms = files.terms();
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
    if (!next && pass.has_decisions() && position < layers) pass.prepare_forward(), next = pass.next();
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
    pass.advance();
    if (action.kind == Action::Kind::run && action.target >= layers) {
      files.gradient(2 * layers - 1 - action.target);
    } else if (action.kind == Action::Kind::run) {
      keep_if_held(action.target - 1);
      held[action.target + 1] = true;
      position = action.target + 1;
      if (pass.has_decisions()) pass.record_run(action.target, terms.forward_cost(action.target));
    } else if (action.kind == Action::Kind::put) {
      const bool remembered = in_forward && terms.keeps_remembered;
      if (remembered || pass.is_disk(action.tier)) files.state(pass.state_of(action.target));
    } else if (action.kind == Action::Kind::drop && !pass.is_tape(action.target)) {
      held[pass.state_of(action.target)] = false;
    }
  }
}

}  // namespace reprise::internal
