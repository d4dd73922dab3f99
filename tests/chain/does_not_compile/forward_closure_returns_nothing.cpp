// the forward closure of a chain is State.int layer, const State. before.
#include "reprise/chain/chain.h"

int main() {
  using State = std::vector<double>;
  reprise::Chain<State> chain(
      2, [](int, const State&) {}, [](int, const State&, State gradient) { return gradient; });
}
