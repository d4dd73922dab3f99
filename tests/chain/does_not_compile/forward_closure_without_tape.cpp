// the forward closure of a chain with tapes is State.int layer, const State. before, Tape
#include "reprise/chain/chain.h"

int main() {
  using State = std::vector<double>;
  reprise::Chain<State, State, State> chain(
      2, [](int, const State& x) { return x; },
      [](int, const State&, const State&, State gradient) { return gradient; });
}
