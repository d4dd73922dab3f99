// the backward closure of a chain is Gradient.int layer, const State. before, Gradient after.
#include "reprise/chain/chain.h"

int main() {
  using State = std::vector<double>;
  reprise::Chain<State> chain(
      2, [](int, const State& x) { return x; }, [](int, State gradient) { return gradient; });
}
