// the forward closure of a chain is State.int layer, const State. before.
#include "reprise/chain/chain.h"

int main() {
  using State = std::vector<double>;
  reprise::Chain<State> chain(
      2, [](const State& x) { return x; }, [](int, const State&, State gradient) { return gradient; });
}
